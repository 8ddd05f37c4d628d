from ftcuda._objects.device.device_handle cimport DeviceHandle
from ftcuda._objects.memory.resource cimport MemoryResource

cdef MemoryResource uncached(DeviceHandle device)
