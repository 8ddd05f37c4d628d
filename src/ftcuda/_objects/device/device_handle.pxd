cimport core.device.device as core


cdef class DeviceHandle:
    cdef int _ordinal              # constant
    cdef object __weakref__

    cdef core.Device* device(self) noexcept nogil
    cdef core.Context* context_of(self) except NULL
    # By the public class, which knows how: a builder of graphs, whose streams are of that priority.
    cdef object graph_builder(self, int priority)


cdef int known(object device_id) except -1
cdef DeviceHandle device_at(int ordinal)
cdef DeviceHandle device_of(core.Context* context)
cpdef DeviceHandle as_device(object device)
