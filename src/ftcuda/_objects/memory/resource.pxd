cimport core.memory.resource as core
from core.memory.resource cimport MemoryKind
from ftcuda._objects.device.device_handle cimport DeviceHandle
from ftcuda._objects.memory.buffer cimport Buffer


cdef class MemoryResource:
    cdef core.MemoryResource* _resource   # constant; null for a resource written in Python
    cdef object __weakref__

    cdef core.MemoryResource* opened(self) except NULL
    cdef object allocate_for(self, object size, object stream, object reported)
    cdef str room(self)


cdef Buffer allocate(MemoryResource resource, object size, object stream, object reported)
cdef object allocate_from(object resource, object size, object stream, object reported)
cdef int not_made(MemoryResource resource) except -1
cdef int make(MemoryResource resource, DeviceHandle device, MemoryKind kind, size_t limit, bint default) except -1
cdef int make_plain(MemoryResource resource, DeviceHandle device, MemoryKind kind) except -1
