from core.device.device cimport Context
from core.stream.event cimport CUevent
from core.stream.stream cimport Stream

cdef int defer_release(Stream* stream, object wanted) except -1
cdef int defer_release_until(Context* context, CUevent event, object wanted) except -1
cdef int release_done() except -1
cdef int release_holder(Context* context, void* holder, CUevent event, bint waits) except -1


cdef class PendingDeallocation:
    """Memory that is given back, once, to somebody else's code. What holds a buffer's memory is this, or its owner."""

    cdef int deallocate(self, Context* context, CUevent event) except -1
