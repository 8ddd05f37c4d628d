cimport core.memory.resource as core
from ftcuda._objects.memory.buffer cimport Buffer
from ftcuda._objects.support.device_handle cimport DeviceHandle


cdef class MemoryResource:
    cdef core.MemoryResource* _resource   # constant; null for a resource written in Python
    cdef object __weakref__

    cdef core.MemoryResource* opened(self) except NULL
    cdef object allocate_for(self, object size, object stream, object reported)


cdef class CachingMemoryResource(MemoryResource):
    cdef readonly MemoryResource upstream


cdef MemoryResource uncached(DeviceHandle device)
cdef Buffer allocate(MemoryResource resource, object size, object stream, object reported)
cdef object allocate_from(object resource, object size, object stream, object reported)
