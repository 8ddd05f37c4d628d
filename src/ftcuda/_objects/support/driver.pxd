cdef int require_driver() except -1
