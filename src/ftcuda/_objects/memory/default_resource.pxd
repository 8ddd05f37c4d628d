from ftcuda._objects.device.device_handle cimport DeviceHandle
from ftcuda._objects.memory.buffer cimport Buffer
from ftcuda._objects.memory.resource cimport MemoryResource

cdef MemoryResource default_resource(DeviceHandle device)
cdef int choose_resource(DeviceHandle device, object resource) except -1
cdef object allocate_on(DeviceHandle device, object size, object stream)
