from ftcuda._objects.memory.buffer cimport Buffer
from ftcuda._objects.memory.resource cimport MemoryResource
from ftcuda._objects.support.device_handle cimport DeviceHandle

cdef MemoryResource default_resource(DeviceHandle device)
cdef int choose_resource(DeviceHandle device, object resource) except -1
cdef object allocate_on(DeviceHandle device, object size, object stream)
