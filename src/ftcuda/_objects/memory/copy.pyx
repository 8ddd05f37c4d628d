"""Copies from buffer to buffer."""

cimport core.stream.stream as streams
from core.memory.copy cimport Place
from core.memory.copy cimport copy as copy_places
from core.sync.reason cimport Status
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.stream.stream cimport Stream, as_stream
from ftcuda._objects.support.deferred_release cimport defer_release
from ftcuda._objects.support.raising cimport raise_status


cdef int copy_buffer(BufferHandle destination, BufferHandle source, object stream) except -1:
    cdef Status status
    if destination._buffer.size() != source._buffer.size():
        raise ValueError(f"cannot copy {source} to {destination}: the sizes differ")
    cdef Stream copying_stream = as_stream(stream)
    cdef streams.Stream* core_stream = copying_stream.on(&destination._buffer.context())
    cdef Place to, origin
    to.pointer, to.buffer = destination._buffer.pointer(), destination._buffer
    origin.pointer, origin.buffer = source._buffer.pointer(), source._buffer
    with nogil:
        status = copy_places(to, origin, source._buffer.size(), core_stream[0])
    if not status.ok():
        involved = (("the destination", destination), ("the source", source), ("the stream", copying_stream))
        raise_status(status, "copy", f"{source} to {destination}", involved)
    keep_foreign(core_stream, source)
    keep_foreign(core_stream, destination)
    return 0


cdef int keep_foreign(streams.Stream* stream, BufferHandle buffer) except -1:
    """Keeps a buffer of somebody else's memory until the work just submitted with it is done.

    The collector would end its owner and its resource before the buffer could say that it is still in use.
    """
    if buffer._buffer.holder() != NULL:
        defer_release(stream, buffer)
    return 0
