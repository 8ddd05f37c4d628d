"""Arrays of other libraries, and buffers of ours, as views."""

import numpy as np
from cpython.buffer cimport PyObject_CheckBuffer
from libc.stdint cimport uint64_t

from core.memory.copy cimport Location
from ftcuda._objects.arrays.dlpack cimport CPU, CUDA, CUDA_HOST, CUDA_MANAGED, DLTensor, Imported, consume
from ftcuda._objects.arrays.lease cimport Lease
from ftcuda._objects.arrays.view_handle cimport ViewHandle, contiguous_strides, new_view, same_view
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.memory.buffer_handle cimport BufferHandle, ordinal_of_memory
from ftcuda._objects.stream.stream cimport Stream, as_stream

from ftcuda._objects.arrays.array_interface import MAX_RANK, check_reach, ints, is_int, parse
from ftcuda._objects.arrays.elements import OPAQUE, as_element, element_of
from ftcuda._objects.stream.stream import LEGACY_DEFAULT_STREAM
from ftcuda._objects.support.handles import handle_of
from ftcuda.errors import ClosedError, CUDAError

cdef enum:
    INTERFACE_OF_VIEWS = 3    # the first version that a view is made of, as in cuda.core


cdef Stream stream_of(object stream):
    """The consumer's stream; None where no order is wanted."""
    if stream is None or isinstance(stream, Stream):
        return stream
    if hasattr(stream, "__cuda_stream__") or (handle := handle_of(stream)) is None:
        return as_stream(stream)
    return None if handle == -1 else Stream.from_handle(handle)


cdef BufferHandle buffer_of(object value):
    """The buffer behind an object of ours; None for a view of others' memory."""
    return (<ViewHandle>value)._buffer if isinstance(value, ViewHandle) else value


cdef object no_stream(object value):
    return BufferError(
        f"cannot view {type(value).__name__}: stream_ptr=None does not say in which stream's order the memory will "
        "be used; "
        "give the stream, or -1 for no order"
    )


cdef bint is_ours(object value):
    """Whether launches with it know the work on its memory, so that no stream has to be named."""
    return isinstance(value, (BufferHandle, ViewHandle))


cdef Stream consumer_of(object value, object stream):
    """The consumer's stream, which has to be named where cuda.core wants it: but for pinned and managed memory by
    DLPack.
    """
    if stream is not None or is_ours(value):
        return stream_of(stream)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        kind = device_of_producer(value)[0]
        if kind == CUDA_MANAGED:
            return LEGACY_DEFAULT_STREAM  # DLPack's None
        if kind != CUDA_HOST:
            raise no_stream(value)
    elif hasattr(value, "__cuda_array_interface__"):
        raise no_stream(value)
    return None


cdef ViewHandle any_view(object value, Stream stream):
    cdef ViewHandle found = view_or_none(value, stream, INTERFACE_OF_VIEWS)
    if found is None:
        raise BufferError(
            f"{type(value).__name__} has neither __dlpack__ nor __cuda_array_interface__ nor the buffer protocol"
        )
    return found


cdef ViewHandle view_or_none(object value, Stream stream, int oldest=0):
    """A view by the first protocol that `value` has; None if it has none. `oldest`: the first version of the CUDA Array
    Interface that will do. Arguments of launches may be older than cuda.core's views."""
    cdef ViewHandle found = view_of_argument(value, stream, oldest)
    return host_view(value) if found is None and PyObject_CheckBuffer(value) else found


cdef bint is_masked(object value):
    """Whether an array of numpy's has a mask, of which no protocol tells."""
    return isinstance(value, np.ndarray) and type(value) is not np.ndarray and hasattr(value, "mask")


cdef int refuse_mask(object value) except -1:
    if is_masked(value):
        raise BufferError(
            f"{type(value).__name__} has a mask, which kernels know nothing of: give the array and the mask as two "
            "arguments"
        )
    return 0


cdef ViewHandle view_of_argument(object value, Stream stream, int oldest=0):
    """A view of an array that is not host memory by the buffer protocol; None if `value` is no such thing."""
    if isinstance(value, ViewHandle):
        (<ViewHandle>value).require_made()
        return value
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return dlpack_view(value, stream)
    if hasattr(value, "__cuda_array_interface__"):
        return cuda_interface_view(value, stream, oldest)
    return None


cdef ViewHandle host_view(object value):
    """A view of what has the buffer protocol."""
    refuse_mask(value)
    array = np.asarray(memoryview(value))
    cdef ViewHandle made = host_interface_view(array, 0)
    made.exporting_obj = value
    made._exported = array
    return made


cdef ViewHandle host_interface_view(object value, int oldest):
    refuse_mask(value)
    name = f"{type(value).__name__}.__array_interface__"
    found = parse(getattr(value, "__array_interface__", None), name, oldest)
    check_reach(found.pointer, found.shape, found.strides, found.dtype.itemsize, name)
    cdef ViewHandle made = new_view(value, None, found.shape, found.strides)
    made._pointer, made.readonly = found.pointer, found.readonly
    made._dtype = found.dtype
    made._code, made._bits = element_of(found.dtype)
    made._device_type, made.device_id, made._is_host = CPU, -1, True
    return made


cdef ViewHandle cuda_interface_view(object value, Stream stream, int oldest):
    # Of our own buffers a lease first: the interface keeps nothing alive, and another thread may close the buffer
    # meanwhile.
    lease = Lease.on(buffer_of(value), value) if is_ours(value) else None
    name = f"{type(value).__name__}.__cuda_array_interface__"
    found = parse(getattr(value, "__cuda_array_interface__", None), name, oldest)
    check_reach(found.pointer, found.shape, found.strides, found.dtype.itemsize, name)
    cdef ViewHandle made = new_view(value, stream, found.shape, found.strides)
    made._exported = lease
    made._pointer, made.readonly = found.pointer, found.readonly
    made._dtype = found.dtype
    made._code, made._bits = element_of(found.dtype)
    find_memory(made)
    if made._device_type == CPU:
        raise BufferError(f"{name}: CUDA knows no memory at {found.pointer:#x}")
    if stream is not None and found.stream is not None and found.stream != stream.number():
        stream.wait(Stream.from_handle(found.stream))
    return made


cdef int find_memory(ViewHandle made) except -1:
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


cdef ViewHandle located(ViewHandle view):
    """The view, which of host memory says whether that is pinned: only the driver knows it of another library's array.
    """
    if view._device_type != CPU:
        return view
    cdef ViewHandle made = same_view(view)
    find_memory(made)
    return made


cdef ViewHandle dlpack_view(object value, Stream stream):
    if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        raise BufferError(f"{type(value).__name__} has no __dlpack__ and __dlpack_device__")
    refuse_mask(value)
    device = device_of_producer(value)  # before it is asked for anything, which other devices may answer with a copy
    cdef Imported imported
    if device[0] in (CUDA, CUDA_MANAGED):
        imported = consume(capsule_for_stream(value, stream))
    else:
        imported = consume(capsule_of(value, None))
    cdef const DLTensor* tensor = imported.tensor()
    check_tensor(tensor)
    shape = tuple([tensor.shape[index] for index in range(tensor.ndim)])
    strides = None if tensor.strides == NULL else tuple([tensor.strides[index] for index in range(tensor.ndim)])
    address = <uint64_t><size_t>tensor.data + <object>tensor.byte_offset
    check_reach(address, shape, strides, tensor.dtype.bits // 8, "the DLPack tensor")
    cdef ViewHandle made = new_view(value, stream, shape, strides)
    made._imported = imported
    made._pointer = address % 2**64  # of an empty one that is anywhere
    made._code, made._bits = tensor.dtype.code, tensor.dtype.bits
    made._device_type = tensor.device.device_type
    made.device_id = -1 if made._device_type == CPU else tensor.device.device_id
    made._is_host = made._device_type != CUDA
    made.readonly = imported.is_read_only()
    return made


cdef tuple device_of_producer(object value):
    """Type and id of the device that a producer says its memory is of, if views can be of it."""
    device = value.__dlpack_device__()
    name = f"{type(value).__name__}.__dlpack_device__"
    if not isinstance(device, tuple) or len(device) != 2 or not all(map(is_int, device)):
        raise BufferError(f"{name} must return (type, id), not {device!r}")
    check_device(device[0], device[1], name)
    return device


cdef int check_device(object kind, object ordinal, str name) except -1:
    if kind not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise BufferError(f"{name}: DLPack device type {kind} is neither host nor CUDA memory")
    if kind != CUDA and (kind != CUDA_MANAGED or ordinal == 0):
        return 0  # of the host's memory the id says nothing
    try:
        as_device(ordinal)
    except (CUDAError, ValueError) as error:
        raise BufferError(f"{name}: DLPack device ({int(kind)}, {ordinal}) is none of CUDA's: {error}") from None
    return 0


cdef object capsule_for_stream(object value, Stream stream):
    """The producer's capsule, with its work ordered before what `stream` is given from now on; no order if that is
    None.
    """
    if stream is None:
        return capsule_of(value, -1)
    if stream._stream == NULL:  # a default stream, which is never closed
        return capsule_of(value, stream.share())
    # The producer has only a number: without a lease another thread's close() could destroy the stream behind it.
    cdef bint entered
    with nogil:
        entered = stream._stream.enter()
    if not entered:
        raise ClosedError(f"cannot import {type(value).__name__} in {stream}: it is closed")
    try:
        return capsule_of(value, stream.share())
    finally:
        with nogil:
            stream._stream.leave()


cdef object capsule_of(object value, object stream):
    try:
        return value.__dlpack__(stream=stream, max_version=(1, 1))
    except TypeError:  # a producer from before DLPack 1.0
        return value.__dlpack__(stream=stream)


cdef int check_tensor(const DLTensor* tensor) except -1:
    check_device(tensor.device.device_type, tensor.device.device_id, "the DLPack tensor")
    if not 0 <= tensor.ndim <= MAX_RANK:
        raise BufferError(f"a DLPack tensor of {tensor.ndim} dimensions is not supported; at most {MAX_RANK}")
    if tensor.dtype.lanes != 1:
        raise BufferError(
            f"DLPack elements of {tensor.dtype.lanes} lanes are not supported; make the lanes a dimension"
        )
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


cdef ViewHandle buffer_view(BufferHandle buffer, object shape, object strides, object itemsize, object dtype,
                            bint is_readonly):
    if dtype is not None:
        dtype = as_element(dtype)
        if itemsize is not None and itemsize != dtype.itemsize:
            raise ValueError(f"itemsize {itemsize} is not that of {dtype}, {dtype.itemsize}")
        itemsize = dtype.itemsize
    if itemsize is None:
        raise ValueError("give dtype or itemsize")
    if not is_int(itemsize):
        raise TypeError(f"itemsize must be an int, not {type(itemsize).__name__}")
    if strides is not None:
        strides = ints(strides, "strides", "StridedMemoryView.from_buffer")
    # The other checks are those of an interface that says the same.
    found = parse(
        {"shape": shape, "typestr": f"|V{itemsize}", "version": 3, "data": (buffer._buffer.pointer(), is_readonly),
         "strides": None if strides is None else tuple([stride * itemsize for stride in strides])},
        "StridedMemoryView.from_buffer",
    )
    last = 0
    for extent, stride in zip(found.shape, contiguous_strides(found.shape) if found.strides is None else found.strides):
        if stride < 0:
            raise ValueError(
                f"a view of a buffer begins at its first byte: strides cannot be negative, as in {strides}"
            )
        last += (extent - 1) * stride
    if 0 not in found.shape and (last + 1) * itemsize > buffer._buffer.size():
        raise ValueError(
            f"shape {shape} with strides {strides} takes {(last + 1) * itemsize} bytes, more than {buffer} has"
        )
    check_reach(found.pointer, found.shape, found.strides, itemsize, "StridedMemoryView.from_buffer")
    cdef ViewHandle made = new_view(buffer, None, found.shape, found.strides)
    made._buffer = buffer
    made._pointer, made.readonly = found.pointer, is_readonly
    made._dtype = dtype
    made._code, made._bits = (OPAQUE, 8 * itemsize) if dtype is None else element_of(dtype)
    made._is_host = buffer.is_reached_by_host()
    made._device_type = CUDA if not made._is_host else CUDA_MANAGED if buffer.migrates() else CUDA_HOST
    if not buffer.is_reached_by_devices():
        if not made._is_host:
            raise BufferError(
                f"cannot view {buffer}: {buffer._memory_resource!r} says that neither the host nor a device reaches "
                "its memory; is_host_accessible or is_device_accessible must be true"
            )
        made._device_type = CPU
    made.device_id = -1
    if made._device_type == CUDA_HOST:
        made.device_id = buffer._buffer.context().device().ordinal()
    elif made._device_type != CPU:
        made.device_id = buffer.where()
    return made
