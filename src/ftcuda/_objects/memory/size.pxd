cdef size_t checked_size(object value, str name) except? <size_t>-1
