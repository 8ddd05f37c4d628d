"""Copies from buffer to buffer, and what buffers are filled with."""

import numpy as np
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

cimport core.stream.stream as streams
from core.memory.copy cimport Place
from core.memory.copy cimport copy as copy_places
from core.completion.deferred_release cimport Retention
from core.sync.reason cimport Status
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.stream.stream cimport Stream, core_stream, quick_stream
from ftcuda._objects.support.deferred_release cimport retain
from ftcuda._objects.support.raising cimport raise_status


cdef int copy_buffer(BufferHandle destination, BufferHandle source, object stream) except -1:
    cdef Status status
    cdef Retention foreign
    cdef Retention* held = NULL
    if destination._buffer.size() != source._buffer.size():
        raise ValueError(f"cannot copy {source} to {destination}: the sizes differ")
    cdef Stream copying_stream = quick_stream(stream)
    cdef streams.Stream* target = core_stream(copying_stream, &destination._buffer.context())
    cdef Place to, origin
    to.pointer, to.buffer = destination._buffer.pointer(), destination._buffer
    origin.pointer, origin.buffer = source._buffer.pointer(), source._buffer
    # The collector would end the owner and the resource of memory that is not ours before the buffer could say that it
    # is still in use.
    if source._buffer.holder() != NULL or destination._buffer.holder() != NULL:
        held = retain(foreign, (source, destination))
    with nogil:
        status = copy_places(to, origin, source._buffer.size(), target[0], held)
    if not status.ok():
        involved = (("the destination", destination), ("the source", source), ("the stream", copying_stream))
        raise_status(status, "copy", f"{source} to {destination}", involved)
    return 0


cdef Pattern pattern_of(object value) except *:
    """A byte from 0 to 255, or what has 1, 2 or 4 bytes."""
    cdef Py_buffer view
    cdef Pattern pattern
    pattern.value, pattern.width = 0, 1
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"a fill value must be an int or a pattern of bytes, not {type(value).__name__}")
    if isinstance(value, int):
        if not 0 <= value < 256:
            raise OverflowError(f"a fill value must be from 0 to 255, not {value}")
        pattern.value = value
        return pattern
    PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    try:
        if view.len not in (1, 2, 4):
            raise ValueError(f"a fill pattern must have 1, 2 or 4 bytes, not {view.len}")
        pattern.width = view.len
        memcpy(&pattern.value, view.buf, pattern.width)
    finally:
        PyBuffer_Release(&view)
    return pattern
