from core.sync.limit cimport Limit


cdef Limit limit_of(object timeout) except *
