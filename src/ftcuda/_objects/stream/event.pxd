cimport core.stream.event as core
from core.stream.capture_session cimport CaptureSession
from ftcuda._objects.device.device_handle cimport DeviceHandle


cdef class Event:
    cdef core.Event* _event        # constant; destroyed by the last lease after close()
    cdef object __weakref__

    @staticmethod
    cdef Event create(DeviceHandle device, object options, CaptureSession* session)
