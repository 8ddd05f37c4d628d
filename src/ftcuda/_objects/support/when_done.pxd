from core.sync.reason cimport Status


cdef int start_thread() except -1
cdef object failure_of(Status status, str verb, object subject)


cdef class WhenDone:
    # By whoever calls it.
    cdef object _function
    cdef object _subject
    cdef str _place    # constant

    cdef int call(self, Status status) except -1
