from ftcuda._objects.memory.resource cimport MemoryResource


cdef class CachingMemoryResource(MemoryResource):
    cdef readonly MemoryResource upstream
