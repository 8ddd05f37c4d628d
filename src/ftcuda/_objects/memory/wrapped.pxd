from ftcuda._objects.memory.resource cimport MemoryResource


cdef class WrappedMemoryResource(MemoryResource):
    cdef object _upstream    # constant
    cdef int _depth          # constant; how many wrap each other, of which this is the outermost
