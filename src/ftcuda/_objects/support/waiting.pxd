from core.limit cimport Limit


cdef Limit limit_of(object timeout) except *
