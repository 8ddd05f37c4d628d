from core.sync.limit cimport Limit


cdef Limit limit_of(object timeout) except *
cdef int pass_on() except -1
