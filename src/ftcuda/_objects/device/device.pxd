cimport core.device.device as core
from core.driver.status cimport Status

cdef int require_driver() except -1


cdef class Device:
    cdef core.Device* _device      # constant; devices are never freed
    cdef object __weakref__

    cdef core.Context* context_of(self) except NULL


# Behind Device.allocate; the module of memory resources provides it when it is imported.
ctypedef object (*AllocateOn)(Device device, object size, object stream)
cdef int provide_allocate_on(AllocateOn function) except -1

cdef Device device_of(core.Context* context)
cdef Device as_device(object device)
