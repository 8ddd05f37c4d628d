from ftcuda._objects.memory.resource cimport MemoryResource


cdef class StagingPool(MemoryResource):
    pass
