"""Views of arrays: what another library's array, or a buffer of ours, looks like to a kernel."""

import numpy as np
from cpython.buffer cimport PyObject_CheckBuffer, PyObject_GetBuffer
from libc.stdint cimport uint64_t

cimport core.memory.buffer as buffers
from core.memory.copy cimport Location, Place
from ftcuda._objects.support.device_handle cimport as_device
from ftcuda._objects.memory.buffer cimport Buffer, ordinal_of_memory
from ftcuda._objects.arrays.dlpack cimport (
    CPU, CUDA, CUDA_HOST, CUDA_MANAGED, DLTensor, Imported, take_over,
)
from ftcuda._objects.stream.stream cimport Stream, as_stream

from ftcuda._objects.arrays.array_interface import MAX_RANK, check_reach, is_int, parse
from ftcuda._objects.arrays.elements import DTYPES, KINDS, OPAQUE, as_element, dtype_of, element_of
from ftcuda._objects.stream.stream import LEGACY_DEFAULT_STREAM
from ftcuda._objects.support.handles import handle_of
from ftcuda.errors import ClosedError

cdef enum:
    INTERFACE_OF_VIEWS = 3    # the first version that a view is made of, as in cuda.core
    UNSIGNED = 1              # DLPack's code


cdef class StridedMemoryView:
    """Pointer, shape, strides and type of an array, whoever made it. Constant, and shared by any number of threads.

    A view keeps its producer alive, and so does a launch or copy with it until it is done. Take it in a launch as it is.

    Parameters
    ----------
    obj : object
        With ``__dlpack__`` (up to DLPack 1.x), else ``__cuda_array_interface__`` (v3), else the buffer protocol.
    stream_ptr : int or Stream
        The stream in whose order the memory will be used: it is made to wait for the producer's work, as the protocols
        demand. 0 and 1 are the legacy default stream, 2 is the per-thread one; -1 establishes no order. None is for pinned and
        managed memory by DLPack, whose producer then takes the legacy default stream, and for the buffer protocol.

    Attributes
    ----------
    device_id : int
        Ordinal of the device; -1 for memory that only the host reaches. Thread safety: atomic.
    readonly : bool
        Whether the producer forbids to write. Thread safety: atomic.
    exporting_obj : object
        The producer. Thread safety: atomic.

    Raises
    ------
    BufferError
        The object offers none of the protocols, or something that is not supported: a mask, an old version of the interface,
        another DLPack version, elements of less than a byte, more bytes than fit in 63 bits. Or no stream was given where one
        is needed.
    """

    def __cinit__(self):
        self._shape = ()
        self._code = OPAQUE
        self._device_type = CPU

    def __init__(self, obj=None, stream_ptr=None):
        if self.exporting_obj is not None:
            raise TypeError("a view is constant: make another one")
        if obj is None:
            raise TypeError("give an object: StridedMemoryView(obj, stream_ptr)")
        self.take(any_view(obj, consumer_of(obj, stream_ptr)))

    @staticmethod
    def from_dlpack(obj, stream_ptr=None):
        """A view of an object with ``__dlpack__``. See the class. Thread safety: atomic."""
        return dlpack_view(obj, consumer_of(obj, stream_ptr))

    @staticmethod
    def from_cuda_array_interface(obj, stream_ptr=None):
        """A view of an object with ``__cuda_array_interface__``. See the class. Thread safety: atomic."""
        if stream_ptr is None and not is_ours(obj):
            raise no_stream(obj)
        return cuda_interface_view(obj, stream_of(stream_ptr), INTERFACE_OF_VIEWS)

    @staticmethod
    def from_array_interface(obj):
        """A view of host memory with ``__array_interface__``, such as a numpy array's. Thread safety: atomic."""
        return host_interface_view(obj, INTERFACE_OF_VIEWS)

    @staticmethod
    def from_any_interface(obj, stream_ptr=None):
        """A view by the first protocol the object has. See the class. Thread safety: atomic."""
        return any_view(obj, consumer_of(obj, stream_ptr))

    @staticmethod
    def from_buffer(buffer, shape, strides=None, *, itemsize=None, dtype=None, is_readonly=False):
        """A view of a buffer. No order is established; launches and copies keep the buffer as if they were given it.

        Parameters
        ----------
        buffer : Buffer
        shape : tuple of int
        strides : tuple of int, optional
            In elements, not bytes. None is C-contiguous.
        itemsize : int, optional
            Bytes of an element; from `dtype` if that is given.
        dtype : numpy.dtype, optional
        is_readonly : bool

        Thread safety: atomic.

        Raises
        ------
        ValueError
            The elements do not all lie in the buffer.
        """
        if not isinstance(buffer, Buffer):
            raise TypeError(f"buffer must be a Buffer, not {type(buffer).__name__}")
        return buffer_view(buffer, shape, strides, itemsize, dtype, is_readonly)

    def view(self, layout=None, dtype=None):
        """The same memory as elements of another type of the same size.

        Parameters
        ----------
        layout : None
            cuda.core's layouts are not supported: use `from_buffer`.
        dtype : numpy.dtype

        Thread safety: atomic.
        """
        if layout is not None:
            raise NotImplementedError("layouts are not supported; use StridedMemoryView.from_buffer(buffer, shape, strides)")
        new_dtype = self.dtype if dtype is None else as_element(dtype)
        if 8 * new_dtype.itemsize != self._bits:
            raise ValueError(f"cannot view elements of {self._bits // 8} bytes as {new_dtype}, which has {new_dtype.itemsize}")
        cdef StridedMemoryView made = StridedMemoryView.__new__(StridedMemoryView)
        made.take(self)
        made._dtype = new_dtype
        made._code, made._bits = element_of(new_dtype)
        return made

    cdef int take(self, StridedMemoryView other) except -1:
        """Becomes the same as `other`; for a view that nobody else has yet."""
        self._pointer, self._shape, self._strides = other._pointer, other._shape, other._strides
        self._code, self._bits, self._dtype = other._code, other._bits, other._dtype
        self._device_type, self.device_id, self._is_host = other._device_type, other.device_id, other._is_host
        self.readonly, self.exporting_obj, self._stream = other.readonly, other.exporting_obj, other._stream
        self._buffer, self._imported, self._exported = other._buffer, other._imported, other._exported
        return 0

    @property
    def ptr(self):
        """Address of the first element. Thread safety: atomic."""
        return self._pointer

    @property
    def shape(self):
        """Extents. Thread safety: atomic."""
        return self._shape

    @property
    def strides(self):
        """Strides in elements, not bytes; None if the producer says C-contiguous. Thread safety: atomic."""
        return self._strides

    @property
    def size(self):
        """Number of elements. Thread safety: atomic."""
        return self.elements()

    @property
    def itemsize(self):
        """Bytes of an element. Thread safety: atomic."""
        return self.itemsize_of()

    @property
    def dtype(self):
        """The elements' numpy dtype; ml_dtypes gives those of bfloat16 and of the 8-bit floats. Thread safety: atomic."""
        return dtype_of(self._code, self._bits) if self._dtype is None else self._dtype

    @property
    def is_device_accessible(self):
        """Whether kernels may touch the memory, as the producer says. Thread safety: atomic."""
        return self._device_type != CPU

    @property
    def is_host_accessible(self):
        """Whether the host may touch the memory, as the producer says. Thread safety: atomic."""
        return self._is_host

    cdef Py_ssize_t elements(self) noexcept:
        cdef Py_ssize_t product = 1
        for extent in self._shape:
            product *= <Py_ssize_t>extent
        return product

    cdef size_t itemsize_of(self) noexcept:
        return self._bits // 8

    cdef buffers.Buffer* core_buffer(self) noexcept:
        if self._buffer is None:
            return NULL
        return self._buffer._buffer

    cdef Place place(self) noexcept:
        cdef Place place
        place.pointer = self._pointer
        place.buffer = self.core_buffer()
        return place

    cdef tuple full_strides(self):
        return contiguous_strides(self._shape) if self._strides is None else self._strides

    cdef bint is_contiguous(self):
        """Whether the elements lie in C order without gaps."""
        if self._strides is None or self.elements() == 0:
            return True
        cdef Py_ssize_t expected = 1
        for extent, stride in zip(reversed(self._shape), reversed(self._strides)):
            if extent != 1 and stride != expected:
                return False
            expected *= <Py_ssize_t>extent
        return True

    def copy_from(self, other, stream, allocator=None, blocking=None):
        """Copies the elements of another view of the same shape and type, both contiguous.

        Parameters
        ----------
        other : StridedMemoryView
        stream : Stream
        allocator : None
            Not needed: copies of pageable memory use pinned memory that ftcuda keeps.
        blocking : bool, optional
            Whether to wait for the copy; None waits if one side is pageable host memory.

        Thread safety: atomic. Stream order: a submission.
        """
        if not isinstance(other, StridedMemoryView):
            raise TypeError(f"other must be a StridedMemoryView, not {type(other).__name__}")
        _exports.copy_views(self, other, as_stream(stream), blocking)

    def copy_to(self, other, stream=None, allocator=None, blocking=None):
        """Copies the elements to another view. See :meth:`copy_from`. Thread safety: atomic. Stream order: a submission."""
        if not isinstance(other, StridedMemoryView):
            raise TypeError(f"other must be a StridedMemoryView, not {type(other).__name__}")
        _exports.copy_views(other, self, as_stream(LEGACY_DEFAULT_STREAM if stream is None else stream), blocking)

    def as_tensor_map(self, box_dim=None, *, options=None, element_strides=None, data_type=None, interleave=None,
                      swizzle=None, l2_promotion=None, oob_fill=None):
        """A map of this tensor for the tensor memory accelerator, which loads tiles of it (compute capability 9.0 and up).

        Parameters
        ----------
        box_dim : tuple of int
            Elements of a tile in each dimension, at most 256.
        options : TensorMapDescriptorOptions or dict, optional
            Instead of everything else.
        element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
            As in `TensorMapDescriptorOptions`.

        Returns
        -------
        TensorMapDescriptor

        Thread safety: atomic.

        Raises
        ------
        ValueError
            A limit of the driver is passed; the message names it.
        NotSupportedError
            The driver or the device has no tensor maps.
        """
        given = {"element_strides": element_strides, "data_type": data_type, "interleave": interleave, "swizzle": swizzle,
                 "l2_promotion": l2_promotion, "oob_fill": oob_fill}
        given = {name: value for name, value in given.items() if value is not None}
        if options is not None and (box_dim is not None or given):
            raise TypeError("give options, or box_dim and single options, not both")
        if options is None:
            if box_dim is None:
                raise TypeError("give box_dim, the shape of a tile")
            options = {"box_dim": box_dim, **given}
        return _tensor_map.TensorMapDescriptor.from_tiled(self, options)

    def __dlpack_device__(self):
        """Type and id of the device, for DLPack consumers. Thread safety: atomic."""
        return self._device_type, self.device_id if self._device_type == CUDA else 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Exports the memory to another library, by DLPack 1.x or, to consumers that name no version, as before 1.0.

        Work that was submitted with the buffer so far comes before what the consumer submits to `stream`.

        Thread safety: atomic. The memory of a buffer that is closed meanwhile is freed when the consumer lets go.
        """
        return _exports.export_view(self, stream, max_version, dl_device, copy)

    @property
    def __cuda_array_interface__(self):
        """The memory by CUDA Array Interface v3. It keeps nothing alive. Thread safety: atomic."""
        return _exports.interface_of(self)

    def __getbuffer__(self, Py_buffer* exported, int flags):
        array = host_array(self)
        if array.dtype.kind == "V" and array.dtype.names is None:
            raise BufferError(f"cannot view {self}: the buffer protocol has no format for its elements; use numpy.asarray")
        PyObject_GetBuffer(array, exported, flags)

    def __array__(self, dtype=None, copy=None):
        """The memory as a numpy array, which shares it unless `dtype` or `copy` says otherwise. Thread safety: atomic.

        Raises
        ------
        BufferError
            It is device memory.
        ClosedError
            The buffer is closed.
        ValueError
            Another `dtype` was asked for, and `copy` is False.
        """
        array = host_array(self)
        wanted = array.dtype if dtype is None else np.dtype(dtype)
        if wanted != array.dtype and copy is not None and not copy:
            raise ValueError(f"cannot view {self} as {wanted} without a copy")
        return array.astype(wanted, copy=bool(copy))

    def __repr__(self):
        kind = {CPU: "host", CUDA: f"device {self.device_id}", CUDA_HOST: "pinned", CUDA_MANAGED: "managed"}[self._device_type]
        return f"<StridedMemoryView {self._pointer:#x}, shape {self._shape}, {self._bits // 8}-byte elements, {kind}>"


cdef tuple contiguous_strides(tuple shape):
    strides = []
    cdef object stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= max(extent, 1)
    return tuple(reversed(strides))


cdef object host_array(StridedMemoryView view):
    """The memory as a numpy array that holds it, after the work submitted with it; of structures and narrow floats too."""
    cdef StridedMemoryView made
    if not view._is_host:
        raise BufferError(f"cannot view {view}: it is device memory, which the host cannot touch; copy it to a pinned buffer")
    itemsize = view._bits // 8
    dtype = np.dtype(f"V{itemsize}") if view._code == OPAQUE and view._dtype is None else view.dtype
    if view._code in KINDS.values() and (view._code, view._bits) in DTYPES:
        return np.from_dlpack(view).view(dtype)
    # What numpy's DLPack does not know goes as its bytes.
    made = StridedMemoryView.__new__(StridedMemoryView)
    made.take(view)
    made._code, made._bits, made._dtype = UNSIGNED, 8, None
    made._shape = (*view._shape, itemsize)
    made._strides = None if view._strides is None else (*[stride * itemsize for stride in view._strides], 1)
    return np.from_dlpack(made).view(dtype)[..., 0]


cdef StridedMemoryView new_view(object exporter, Stream stream, tuple shape, tuple strides):
    cdef StridedMemoryView made = StridedMemoryView.__new__(StridedMemoryView)
    made.exporting_obj = exporter
    made._stream = stream
    made._shape = shape
    made._strides = strides
    return made


cdef Stream stream_of(object stream):
    """The consumer's stream; None where no order is wanted."""
    if stream is None or isinstance(stream, Stream):
        return stream
    if hasattr(stream, "__cuda_stream__") or (handle := handle_of(stream)) is None:
        return as_stream(stream)
    return None if handle == -1 else Stream.from_handle(handle)


cdef object no_stream(object value):
    return BufferError(
        f"cannot view {type(value).__name__}: stream_ptr=None does not say in which stream's order the memory will be used; "
        "give the stream, or -1 for no order"
    )


cdef bint is_ours(object value):
    """Whether launches with it know the work on its memory, so that no stream has to be named."""
    return isinstance(value, Buffer) or isinstance(value, StridedMemoryView)


cdef Stream consumer_of(object value, object stream):
    """The consumer's stream, which has to be named where cuda.core wants it: but for pinned and managed memory by DLPack."""
    if stream is not None or is_ours(value):
        return stream_of(stream)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        kind = value.__dlpack_device__()[0]
        if kind == CUDA_MANAGED:
            return LEGACY_DEFAULT_STREAM  # DLPack's None
        if kind != CUDA_HOST:
            raise no_stream(value)
    elif hasattr(value, "__cuda_array_interface__"):
        raise no_stream(value)
    return None


cdef StridedMemoryView any_view(object value, Stream stream):
    cdef StridedMemoryView found = view_or_none(value, stream, INTERFACE_OF_VIEWS)
    if found is None:
        raise BufferError(
            f"{type(value).__name__} has neither __dlpack__ nor __cuda_array_interface__ nor the buffer protocol"
        )
    return found


cdef StridedMemoryView view_or_none(object value, Stream stream, int oldest=0):
    """A view by the first protocol that `value` has; None if it has none. `oldest`: the first version of the CUDA Array
    Interface that will do. Arguments of launches may be older than cuda.core's views."""
    cdef StridedMemoryView found = view_of_argument(value, stream, oldest)
    return host_view(value) if found is None and PyObject_CheckBuffer(value) else found


cdef bint is_masked(object value):
    """Whether an array of numpy's has a mask, of which no protocol tells."""
    return isinstance(value, np.ndarray) and type(value) is not np.ndarray and hasattr(value, "mask")


cdef int refuse_mask(object value) except -1:
    if is_masked(value):
        raise BufferError(
            f"{type(value).__name__} has a mask, which kernels know nothing of: give the array and the mask as two arguments"
        )
    return 0


cdef StridedMemoryView view_of_argument(object value, Stream stream, int oldest=0):
    """A view of an array that is not host memory by the buffer protocol; None if `value` is no such thing."""
    if isinstance(value, StridedMemoryView):
        return value
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return dlpack_view(value, stream)
    if hasattr(value, "__cuda_array_interface__"):
        return cuda_interface_view(value, stream, oldest)
    return None


cdef StridedMemoryView host_view(object value):
    """A view of what has the buffer protocol."""
    refuse_mask(value)
    array = np.asarray(memoryview(value))
    cdef StridedMemoryView made = host_interface_view(array, 0)
    made.exporting_obj = value
    made._exported = array
    return made


cdef StridedMemoryView host_interface_view(object value, int oldest):
    refuse_mask(value)
    name = f"{type(value).__name__}.__array_interface__"
    found = parse(getattr(value, "__array_interface__", None), name, oldest)
    check_reach(found.pointer, found.shape, found.strides, found.dtype.itemsize, name)
    cdef StridedMemoryView made = new_view(value, None, found.shape, found.strides)
    made._pointer, made.readonly = found.pointer, found.readonly
    made._dtype = found.dtype
    made._code, made._bits = element_of(found.dtype)
    made._device_type, made.device_id, made._is_host = CPU, -1, True
    return made


cdef StridedMemoryView cuda_interface_view(object value, Stream stream, int oldest):
    # Of our own buffers a lease first: the interface keeps nothing alive, and another thread may close the buffer meanwhile.
    lease = _exports.lease_on(value) if isinstance(value, (StridedMemoryView, Buffer)) else None
    name = f"{type(value).__name__}.__cuda_array_interface__"
    found = parse(getattr(value, "__cuda_array_interface__", None), name, oldest)
    check_reach(found.pointer, found.shape, found.strides, found.dtype.itemsize, name)
    cdef StridedMemoryView made = new_view(value, stream, found.shape, found.strides)
    made._exported = lease
    made._pointer, made.readonly = found.pointer, found.readonly
    made._dtype = found.dtype
    made._code, made._bits = element_of(found.dtype)
    find_memory(made)
    if made._device_type == CPU:
        raise BufferError(f"{name}: CUDA knows no memory at {found.pointer:#x}")
    if stream is not None and found.stream is not None and found.stream != stream.handle:
        stream.wait(Stream.from_handle(found.stream))
    return made


cdef int find_memory(StridedMemoryView made) except -1:
    """Asks the driver whose memory the pointer is; an address that it does not know is the host's."""
    cdef Location location = Location.unknown
    if made._pointer == 0:  # an empty array
        made._device_type, made.device_id = CUDA, as_device(None).context_of().device().ordinal()
        return 0
    made.device_id = ordinal_of_memory(made._pointer, location)
    made._device_type = {Location.unknown: CPU, Location.device: CUDA, Location.pinned: CUDA_HOST,
                         Location.managed: CUDA_MANAGED}[location]
    made._is_host = made._device_type != CUDA
    return 0


cdef StridedMemoryView located(StridedMemoryView view):
    """The view, which of host memory says whether that is pinned: only the driver knows it of another library's array."""
    if view._device_type != CPU:
        return view
    cdef StridedMemoryView made = StridedMemoryView.__new__(StridedMemoryView)
    made.take(view)
    find_memory(made)
    return made


cdef StridedMemoryView dlpack_view(object value, Stream stream):
    if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        raise BufferError(f"{type(value).__name__} has no __dlpack__ and __dlpack_device__")
    refuse_mask(value)
    device = value.__dlpack_device__()
    if not isinstance(device, tuple) or len(device) != 2:
        raise BufferError(f"{type(value).__name__}.__dlpack_device__ must return (type, id), not {device!r}")
    cdef Imported imported
    if device[0] in (CUDA, CUDA_MANAGED):
        imported = take_over(capsule_for_stream(value, stream))
    else:
        imported = take_over(capsule_of(value, None))
    cdef const DLTensor* tensor = imported.tensor()
    check_tensor(tensor)
    shape = tuple([tensor.shape[index] for index in range(tensor.ndim)])
    strides = None if tensor.strides == NULL else tuple([tensor.strides[index] for index in range(tensor.ndim)])
    address = <uint64_t><size_t>tensor.data + <object>tensor.byte_offset
    check_reach(address, shape, strides, tensor.dtype.bits // 8, "the DLPack tensor")
    cdef StridedMemoryView made = new_view(value, stream, shape, strides)
    made._imported = imported
    made._pointer = address % 2**64  # of an empty one that is anywhere
    made._code, made._bits = tensor.dtype.code, tensor.dtype.bits
    made._device_type = tensor.device.device_type
    made.device_id = tensor.device.device_id if made._device_type in (CUDA, CUDA_MANAGED) else -1
    made._is_host = made._device_type != CUDA
    made.readonly = imported.is_read_only()
    return made


cdef object capsule_for_stream(object value, Stream stream):
    """The producer's capsule, with its work ordered before what `stream` is given from now on; no order if that is None."""
    if stream is None:
        return capsule_of(value, -1)
    if stream._stream == NULL:  # a default stream, which is never closed
        return capsule_of(value, stream.handle)
    # The producer has only a number: without a lease another thread's close() could destroy the stream behind it.
    cdef bint entered
    with nogil:
        entered = stream._stream.enter()
    if not entered:
        raise ClosedError(f"cannot import {type(value).__name__} in {stream}: it is closed")
    try:
        return capsule_of(value, stream.handle)
    finally:
        with nogil:
            stream._stream.leave()


cdef object capsule_of(object value, object stream):
    try:
        return value.__dlpack__(stream=stream, max_version=(1, 1))
    except TypeError:  # a producer from before DLPack 1.0
        return value.__dlpack__(stream=stream)


cdef int check_tensor(const DLTensor* tensor) except -1:
    if tensor.device.device_type not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise BufferError(f"DLPack device type {tensor.device.device_type} is neither host nor CUDA memory")
    if not 0 <= tensor.ndim <= MAX_RANK:
        raise BufferError(f"a DLPack tensor of {tensor.ndim} dimensions is not supported; at most {MAX_RANK}")
    if tensor.dtype.lanes != 1:
        raise BufferError(f"DLPack elements of {tensor.dtype.lanes} lanes are not supported; make the lanes a dimension")
    if tensor.dtype.bits == 0 or tensor.dtype.bits % 8:
        raise BufferError(f"DLPack elements of {tensor.dtype.bits} bits are not supported; only whole bytes")
    if tensor.ndim != 0 and tensor.shape == NULL:
        raise BufferError("the DLPack tensor has no shape")
    empty = False
    for index in range(tensor.ndim):
        if tensor.shape[index] < 0:
            raise BufferError(f"a DLPack shape cannot be negative, as {tensor.shape[index]} is")
        empty = empty or tensor.shape[index] == 0
    if tensor.data == NULL and not empty:
        raise BufferError("the DLPack tensor has no data, and is not empty")
    return 0


cdef StridedMemoryView buffer_view(Buffer buffer, object shape, object strides, object itemsize, object dtype, bint is_readonly):
    if dtype is not None:
        dtype = as_element(dtype)
        if itemsize is not None and itemsize != dtype.itemsize:
            raise ValueError(f"itemsize {itemsize} is not that of {dtype}, {dtype.itemsize}")
        itemsize = dtype.itemsize
    if itemsize is None:
        raise ValueError("give dtype or itemsize")
    if not is_int(itemsize):
        raise TypeError(f"itemsize must be an int, not {type(itemsize).__name__}")
    # The checks are those of an interface that says the same.
    found = parse(
        {"shape": shape, "typestr": f"|V{itemsize}", "version": 3, "data": (buffer._buffer.pointer(), is_readonly),
         "strides": None if strides is None else tuple([stride * itemsize for stride in strides])},
        "StridedMemoryView.from_buffer",
    )
    last = 0
    for extent, stride in zip(found.shape, contiguous_strides(found.shape) if found.strides is None else found.strides):
        if stride < 0:
            raise ValueError(f"a view of a buffer begins at its first byte: strides cannot be negative, as in {strides}")
        last += (extent - 1) * stride
    if 0 not in found.shape and (last + 1) * itemsize > buffer.size:
        raise ValueError(f"shape {shape} with strides {strides} takes {(last + 1) * itemsize} bytes, more than {buffer} has")
    check_reach(found.pointer, found.shape, found.strides, itemsize, "StridedMemoryView.from_buffer")
    cdef StridedMemoryView made = new_view(buffer, None, found.shape, found.strides)
    made._buffer = buffer
    made._pointer, made.readonly = found.pointer, is_readonly
    made._dtype = dtype
    made._code, made._bits = (OPAQUE, 8 * itemsize) if dtype is None else element_of(dtype)
    made._is_host = buffer.is_host_accessible
    made._device_type = CUDA if not made._is_host else CUDA_MANAGED if buffer.is_managed else CUDA_HOST
    if not buffer.is_device_accessible:
        made._device_type = CPU
    made.device_id = buffer.device_id
    return made


# At the end: exports and tensor maps need the class, which needs them only when it is used.
import ftcuda._objects.arrays.exports as _exports  # noqa: E402
import ftcuda._objects.arrays.tensor_map as _tensor_map  # noqa: E402
