cimport core.stream.event as core
from ftcuda._objects.device.device cimport Device


cdef class Event:
    cdef core.Event* _event        # constant; destroyed by the last lease after close()
    cdef object __weakref__
