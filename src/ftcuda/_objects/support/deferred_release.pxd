from core.device.device cimport Context
from core.stream.event cimport CUevent
from core.stream.stream cimport Stream

cdef int keep(Stream* stream, object wanted) except -1
cdef int keep_until(Context* context, CUevent event, object wanted) except -1
cdef int release_done() except -1
cdef int let_go(Context* context, void* holder, CUevent event, bint waits) except -1


cdef class Loan:
    """Memory that is given back, once, to somebody else's code. What holds a buffer's memory is this, or its owner."""

    cdef int give_back(self, Context* context, CUevent event) except -1
