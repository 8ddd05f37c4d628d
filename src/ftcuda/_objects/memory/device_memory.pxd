from ftcuda._objects.memory.resource cimport MemoryResource
from ftcuda._objects.support.device_handle cimport DeviceHandle

cdef MemoryResource uncached(DeviceHandle device)
