from libc.stdint cimport uint32_t

from ftcuda._objects.memory.buffer_handle cimport BufferHandle


# What memory is filled with, again and again: so many bytes.
cdef struct Pattern:
    uint32_t value
    unsigned width


cdef int copy_buffer(BufferHandle destination, BufferHandle source, object stream) except -1
cdef Pattern pattern_of(object value) except *
