"""What a view gives to others: DLPack, CUDA Array Interface, copies."""

import numpy as np
from libc.stdint cimport uint64_t

cimport core.memory.copy as core
cimport core.stream.stream as streams
from core.device.device cimport Context
from core.memory.copy cimport Place
from core.completion.deferred_release cimport Retention
from core.sync.reason cimport Status
from ftcuda._objects.memory.buffer_handle cimport BufferHandle, pinned_memory
from ftcuda._objects.arrays.dlpack cimport (
    CPU, CUDA_HOST, DLDataType, DLDevice, IS_COPIED, READ_ONLY, export,
)
from ftcuda._objects.arrays.imports cimport buffer_view, located, view_or_none
from ftcuda._objects.arrays.lease cimport Lease
from ftcuda._objects.arrays.view_handle cimport ViewHandle
from ftcuda._objects.stream.stream cimport Stream
from ftcuda._objects.support.deferred_release cimport retain
from ftcuda._objects.support.raising cimport raise_status

from ftcuda._objects.arrays.array_interface import is_int
from ftcuda._objects.arrays.elements import OPAQUE
from ftcuda._objects.stream.stream import LEGACY_DEFAULT_STREAM
from ftcuda.errors import ClosedError


cdef object export_view(ViewHandle view, object stream, object max_version, object dl_device, object copy):
    """Behind ``__dlpack__``."""
    cdef DLDevice device
    cdef DLDataType dtype
    cdef uint64_t flags = READ_ONLY if view.readonly else 0
    view.require_made()
    if not (max_version is None or isinstance(max_version, tuple) and len(max_version) == 2
            and all(map(is_int, max_version))):
        raise TypeError(f"max_version must be two integers, (major, minor), not {max_version!r}")
    if dl_device is not None:
        try:
            dl_device = tuple(dl_device)
        except TypeError:
            dl_device = ()
        if len(dl_device) != 2 or not all(map(is_int, dl_device)):
            raise TypeError("dl_device must be two integers, (type, id) as __dlpack_device__ gives them")
    versioned = max_version is not None and max_version[0] >= 1
    if view._code == OPAQUE:
        raise BufferError(f"DLPack has no code for the elements of {view}")
    if view.readonly and not versioned:
        raise BufferError(
            f"{view} is read-only, which capsules without a version cannot say; ask with max_version=(1, 0)"
        )
    if copy or (dl_device is not None and tuple(dl_device) != view.__dlpack_device__()):
        if copy is False:
            raise BufferError(f"{view} is not on DLPack device {dl_device}, and the consumer forbids a copy")
        view = copy_for_export(view, dl_device)
        flags = IS_COPIED
    else:
        order_before(view, stream)
    device.device_type, device.device_id = view.__dlpack_device__()
    dtype.code, dtype.bits, dtype.lanes = view._code, view._bits, 1
    lease = Lease.on(view._buffer, view)
    return export(lease, versioned, <void*><size_t>view._pointer, device, dtype, view._shape, view.full_strides(),
                  flags)


cdef int order_before(ViewHandle view, object stream) except -1:
    """Makes the consumer's `stream` (DLPack's meaning of it) wait for the work on the view's memory."""
    cdef Stream consumer
    if view._device_type == CPU:
        if stream is not None and stream != -1:
            raise BufferError(f"{view} is host memory: it has no stream")
        return 0
    if stream == -1:
        return 0
    if stream == 0:
        raise BufferError("stream 0 does not say which default stream is meant: 1 is the legacy one, 2 the thread's")
    consumer = LEGACY_DEFAULT_STREAM if stream is None else Stream.from_handle(stream)
    wait_for_work(view, consumer)
    if stream is None and view._is_host:
        consumer.sync()  # a consumer that names no stream reads with the host
    return 0


cdef int wait_for_work(ViewHandle view, Stream consumer) except -1:
    cdef streams.Stream* target
    cdef Status status
    if view._buffer is not None:
        target = consumer.on(&view._buffer._buffer.context())
        with nogil:
            status = view._buffer._buffer.order_before(target[0])
        if not status.ok():
            raise_status(status, "export", view._buffer, (("the consumer's stream", consumer),))
    elif view._stream is not None and view._stream.number() != consumer.number():
        consumer.wait(view._stream)
    return 0


cdef ViewHandle copy_for_export(ViewHandle view, object dl_device):
    """A copy of the elements where the consumer wants them: beside the original, or in host memory."""
    cdef BufferHandle target
    cdef Stream stream = LEGACY_DEFAULT_STREAM if view._stream is None else view._stream
    cdef size_t bytes = view.elements() * view.itemsize_of()
    if dl_device is None or tuple(dl_device) == view.__dlpack_device__():
        resource = None if view._buffer is None else view._buffer.memory_resource
        if resource is None:
            raise BufferError(f"cannot copy {view} for a consumer: its memory came from no resource of ftcuda's")
        target = resource.allocate(bytes, stream=stream)
    elif tuple(dl_device) in ((CPU, 0), (CUDA_HOST, 0)):
        target = pinned_memory(bytes, stream.on(NULL))
    else:
        raise BufferError(f"cannot copy {view} to DLPack device {dl_device}; only to the host, which is (1, 0)")
    cdef ViewHandle made = buffer_view(target, view._shape, None, view.itemsize_of(), None, False)
    made._code, made._bits, made._dtype = view._code, view._bits, view._dtype
    wait_for_work(view, stream)
    copy_views(made, view, stream, True)
    if dl_device is not None and dl_device[0] == CPU:
        made._device_type = CPU
    return made


cdef dict interface_of(ViewHandle view):
    """Behind ``__cuda_array_interface__``."""
    view.require_made()
    if view._device_type == CPU:
        raise AttributeError(f"{view} is host memory, which has no __cuda_array_interface__")
    dtype = np.dtype(f"V{view.itemsize_of()}") if view._code == OPAQUE and view._dtype is None else view.dtype
    if dtype.kind == "V" and view._code != OPAQUE:
        raise AttributeError(f"the CUDA Array Interface has no name for elements of {dtype}; DLPack has")
    if view._buffer is not None and view._buffer._buffer.is_closed():
        raise ClosedError(f"cannot export {view._buffer}: it is closed")
    stream = None
    if view._buffer is not None:
        wait_for_work(view, LEGACY_DEFAULT_STREAM)  # the one stream that means the same to whoever reads this
        stream = 1
    elif view._stream is not None:
        if view._stream.is_closed:
            raise ClosedError(f"cannot export {view}: the stream that it is used in, {view._stream}, is closed")
        stream = view._stream.handle
    found = {
        "shape": view._shape,
        "typestr": dtype.str,
        "data": (view._pointer if view.elements() else 0, view.readonly),
        "strides": None if view._strides is None else tuple([stride * view.itemsize_of() for stride in view._strides]),
        "version": 3,
        "stream": stream,
    }
    if dtype.fields is not None:
        found["descr"] = dtype.descr
    return found


cdef ViewHandle end_of_copy(object value, BufferHandle other, str name):
    """A view of an array that is copied to or from all of the buffer `other`."""
    cdef ViewHandle view = view_or_none(value, None)
    if view is None:
        raise TypeError(f"{name} must be a Buffer, an array or have the buffer protocol, not {type(value).__name__}")
    if not view.is_contiguous():
        raise ValueError(
            f"cannot copy between {other} and {view}: it is not contiguous; numpy.ascontiguousarray makes it so"
        )
    if view.elements() * view.itemsize_of() != other._buffer.size():
        raise ValueError(f"cannot copy between {other} and {view}: the sizes differ")
    if name == "dst" and view.readonly:
        raise ValueError(f"cannot copy to {view}: it is read-only")
    return located(view)


cdef int copy_views(ViewHandle target, ViewHandle source, Stream stream, object blocking) except -1:
    """Behind the copies of views and buffers."""
    target.require_made()
    source.require_made()
    cdef size_t bytes = source.elements() * source.itemsize_of()
    if target.readonly:
        raise ValueError(f"cannot copy to {target}: it is read-only")
    if target._shape != source._shape or (target._code, target._bits) != (source._code, source._bits):
        raise ValueError(f"cannot copy {source} to {target}: shape and element type must be the same")
    if not target.is_contiguous() or not source.is_contiguous():
        raise ValueError(f"cannot copy {source} to {target}: only contiguous views are copied")
    return copy_bytes(target, source, bytes, stream, blocking)


cdef int copy_bytes(ViewHandle target, ViewHandle source, size_t bytes, Stream stream, object blocking) except -1:
    """Copies between two contiguous views of so many bytes."""
    cdef Place destination = target.place()
    cdef Place origin = source.place()
    cdef Status status
    cdef Retention foreign
    cdef Retention* held = NULL
    cdef streams.Stream* submitted
    cdef bint to_host = target._device_type == CPU
    cdef bint from_host = source._device_type == CPU
    if to_host and from_host:
        raise ValueError(f"cannot copy {source} to {target}: both are host memory, which numpy copies")
    cdef ViewHandle ours = target if target._buffer is not None else source
    cdef Context* context = NULL
    if ours._buffer is not None:
        context = &ours._buffer._buffer.context()
    submitted = stream.on(context)
    if is_foreign(target) or is_foreign(source):
        held = retain(foreign, (target, source))
    with nogil:
        if from_host:
            status = core.upload(destination, <void*><size_t>origin.pointer, bytes, submitted[0], held)
        elif to_host:
            status = core.download(<void*><size_t>destination.pointer, origin, bytes, submitted[0], held)
        else:
            status = core.copy(destination, origin, bytes, submitted[0], held)
    if not status.ok():
        involved = (("the destination", target._buffer), ("the source", source._buffer), ("the stream", stream))
        raise_status(status, "copy", f"{source} to {target}", involved)
    if blocking or (blocking is None and from_host):
        stream.sync()
    return 0


cdef bint is_foreign(ViewHandle view):
    """Whether the memory is another library's, and used by the device."""
    if view._buffer is not None:
        return view._buffer._buffer.holder() != NULL
    return view._device_type != CPU
