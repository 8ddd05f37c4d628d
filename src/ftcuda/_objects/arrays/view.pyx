"""Views of arrays: what another library's array, or a buffer of ours, looks like to a kernel."""

import numpy as np
from cpython.buffer cimport PyObject_GetBuffer

from ftcuda._objects.arrays.dlpack cimport CPU, CUDA
from ftcuda._objects.arrays.exports cimport copy_views, export_view, interface_of
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.arrays.imports cimport (
    any_view, buffer_view, consumer_of, cuda_interface_view, dlpack_view, host_interface_view, is_ours,
    no_stream, stream_of,
)
from ftcuda._objects.arrays.view_handle cimport ViewHandle, same_view
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.launch.tensor_map cimport TensorMapDescriptor
from ftcuda._objects.stream.stream cimport as_stream
from ftcuda._objects.support.public_class cimport stand_above

from ftcuda._objects.arrays.elements import DTYPES, KINDS, OPAQUE, as_element, dtype_of, element_of
from ftcuda._objects.stream.stream import LEGACY_DEFAULT_STREAM

cdef enum:
    INTERFACE_OF_VIEWS = 3    # the first version that a view is made of, as in cuda.core
    UNSIGNED = 1              # DLPack's code


cdef class StridedMemoryView(ViewHandle):
    """Pointer, shape, strides and type of an array, whoever made it. Constant, and shared by any number of threads.

    A view keeps its producer alive, and so does a launch or copy with it until it is done. Take it in a launch as it
    is.

    Parameters
    ----------
    obj : object
        With ``__dlpack__`` (up to DLPack 1.x), else ``__cuda_array_interface__`` (v3), else the buffer protocol.
    stream_ptr : int or Stream
        The stream in whose order the memory will be used: it is made to wait for the producer's work, as the protocols
        demand. 0 and 1 are the legacy default stream, 2 is the per-thread one; -1 establishes no order. None is for
        pinned and managed memory by DLPack, whose producer then takes the legacy default stream, and for the buffer
        protocol.

    Attributes
    ----------
    device_id : int
        Ordinal of the device; of pinned memory what its producer says, which is 0 by DLPack; of memory that only the
        host reaches -1, or by `from_array_interface` the calling thread's device, as in cuda.core. Thread safety:
        atomic.
    readonly : bool
        Whether the producer forbids to write. Thread safety: atomic.
    exporting_obj : object
        The producer. Thread safety: atomic.

    Raises
    ------
    BufferError
        The object offers none of the protocols, or something that is not supported: a mask, an old version of the
        interface, another DLPack version, elements of less than a byte, more bytes than fit in 63 bits. Or no stream
        was given where one is needed.
    """

    def __init__(self, obj=None, stream_ptr=None):
        if self.exporting_obj is not None:
            raise TypeError("a view is constant: make another one")
        if obj is None:
            raise TypeError("give an object: StridedMemoryView(obj, stream_ptr)")
        self.assign(any_view(obj, consumer_of(obj, stream_ptr)))

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
        cdef ViewHandle made = host_interface_view(obj, INTERFACE_OF_VIEWS)
        made.device_id = as_device(None).device_id  # as cuda.core has it; nobody else has the view yet
        return made

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
        if not isinstance(buffer, BufferHandle):
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
            raise NotImplementedError(
                "layouts are not supported; use StridedMemoryView.from_buffer(buffer, shape, strides)"
            )
        new_dtype = self.dtype if dtype is None else as_element(dtype)
        if 8 * new_dtype.itemsize != self._bits:
            raise ValueError(
                f"cannot view elements of {self._bits // 8} bytes as {new_dtype}, which has {new_dtype.itemsize}"
            )
        cdef ViewHandle made = same_view(self)
        made._dtype = new_dtype
        made._code, made._bits = element_of(new_dtype)
        return made

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
        """The elements' numpy dtype; ml_dtypes gives those of bfloat16 and of the 8-bit floats. Thread safety: atomic.
        """
        return dtype_of(self._code, self._bits) if self._dtype is None else self._dtype

    @property
    def is_device_accessible(self):
        """Whether kernels may touch the memory, as the producer says. Thread safety: atomic."""
        return self._device_type != CPU

    @property
    def is_host_accessible(self):
        """Whether the host may touch the memory, as the producer says. Thread safety: atomic."""
        return self._is_host

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
        copy_views(self, other, as_stream(stream), blocking)

    def copy_to(self, other, stream=None, allocator=None, blocking=None):
        """Copies the elements to another view. See :meth:`copy_from`. Thread safety: atomic. Stream order: a
        submission.
        """
        if not isinstance(other, StridedMemoryView):
            raise TypeError(f"other must be a StridedMemoryView, not {type(other).__name__}")
        copy_views(other, self, as_stream(LEGACY_DEFAULT_STREAM if stream is None else stream), blocking)

    def as_tensor_map(self, box_dim=None, *, options=None, element_strides=None, data_type=None, interleave=None,
                      swizzle=None, l2_promotion=None, oob_fill=None):
        """A map of this tensor for the tensor memory accelerator, which loads tiles of it.

        It needs compute capability 9.0 and up.

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
        given = {"element_strides": element_strides, "data_type": data_type, "interleave": interleave,
                 "swizzle": swizzle, "l2_promotion": l2_promotion, "oob_fill": oob_fill}
        given = {name: value for name, value in given.items() if value is not None}
        if options is not None and (box_dim is not None or given):
            raise TypeError("give options, or box_dim and single options, not both")
        if options is None:
            if box_dim is None:
                raise TypeError("give box_dim, the shape of a tile")
            options = {"box_dim": box_dim, **given}
        return TensorMapDescriptor.from_tiled(self, options)

    def __dlpack_device__(self):
        """Type and id of the device, for DLPack consumers. Thread safety: atomic."""
        return self._device_type, self.device_id if self._device_type == CUDA else 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Exports the memory to another library, by DLPack 1.x or, to consumers that name no version, as before 1.0.

        Work that was submitted with the buffer so far comes before what the consumer submits to `stream`.

        Thread safety: atomic. The memory of a buffer that is closed meanwhile is freed when the consumer lets go.
        """
        return export_view(self, stream, max_version, dl_device, copy)

    @property
    def __cuda_array_interface__(self):
        """The memory by CUDA Array Interface v3. It keeps nothing alive. Thread safety: atomic."""
        return interface_of(self)

    def __getbuffer__(self, Py_buffer* exported, int flags):
        array = host_array(self)
        if array.dtype.kind == "V" and array.dtype.names is None:
            raise BufferError(
                f"cannot view {self}: the buffer protocol has no format for its elements; use numpy.asarray"
            )
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


stand_above(StridedMemoryView, ViewHandle)


cdef object host_array(ViewHandle view):
    """The memory as a numpy array that holds it, after the work submitted with it; of structures and narrow floats too.
    """
    cdef ViewHandle made
    view.require_made()
    if not view._is_host:
        raise BufferError(
            f"cannot view {view}: it is device memory, which the host cannot touch; copy it to a pinned buffer"
        )
    itemsize = view._bits // 8
    dtype = np.dtype(f"V{itemsize}") if view._code == OPAQUE and view._dtype is None else view.dtype
    if view._code in KINDS.values() and (view._code, view._bits) in DTYPES:
        return np.from_dlpack(view).view(dtype)
    # What numpy's DLPack does not know goes as its bytes.
    made = same_view(view)
    made._code, made._bits, made._dtype = UNSIGNED, 8, None
    made._shape = (*view._shape, itemsize)
    made._strides = None if view._strides is None else (*[stride * itemsize for stride in view._strides], 1)
    return np.from_dlpack(made).view(dtype)[..., 0]
