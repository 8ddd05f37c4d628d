"""What all wings need of a device: its context, and the object that stands for it."""

from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

cimport core.device.device as core
from core.device.device cimport DEVICE_LIMIT
from core.sync.reason cimport Status
from ftcuda._objects.support.driver cimport require_driver
from ftcuda._objects.support.public_class cimport PublicClass, declare_handle, unmade
from ftcuda._objects.support.raising cimport check, raise_status

cdef extern from "_objects/support/immortal.hpp" namespace "ftcuda::objects":
    bint make_immortal(object wanted)


cdef class DeviceHandle:
    """Below `Device`, which stands on top of all wings, because it makes what they have."""

    _made = "devices are found by Device()"

    cdef core.Device* device(self) noexcept nogil:
        return core.Device.found(self._ordinal)

    cdef core.Context* context_of(self) except NULL:
        """The device's primary context, retained at the first call."""
        cdef core.Context* context = NULL
        cdef core.Device* device = self.device()
        cdef Status status
        with nogil:
            status = device.context(context)
            if status.ok():
                status = context.usable()
        check(status, "use", self)
        return context

    cdef object graph_builder(self, int priority):
        raise NotImplementedError


# One object for each device that there may be, which lives as long as the process. Filled when ftcuda is imported, once
# `Device` is known; constant afterwards.
cdef PyObject* objects[DEVICE_LIMIT]


cdef int make_objects(const PublicClass* above) except -1:
    cdef DeviceHandle device
    cdef int ordinal
    for ordinal in range(DEVICE_LIMIT):
        device = unmade(above)
        device._ordinal = ordinal
        Py_INCREF(device)  # the table's, for ever
        make_immortal(device)
        objects[ordinal] = <PyObject*>device
    return 0


declare_handle(DeviceHandle, make_objects)


cdef int known(object device_id) except -1:
    """The ordinal of a device that there is. For None that of the calling thread's current context, or 0 if it has
    none.
    """
    cdef int ordinal = 0
    cdef Status status
    cdef core.Device* found = NULL
    require_driver()
    if device_id is None:
        with nogil:
            status = core.Device.current(ordinal)
        check(status, "find", "the current device")
    elif isinstance(device_id, DeviceHandle):
        return (<DeviceHandle>device_id)._ordinal
    elif not isinstance(device_id, bool) and (isinstance(device_id, int) or hasattr(device_id, "__index__")):
        number = PyNumber_Index(device_id)
        if not 0 <= number < 2**31:
            raise ValueError(f"device_id must be an ordinal from 0 up, not {number}")
        ordinal = number
    else:
        raise TypeError(f"device_id must be an int, a Device or None, not {type(device_id).__name__}")
    with nogil:
        status = core.Device.get(ordinal, found)
    if not status.ok():
        raise_status(status, "open", f"device {ordinal}")
    return ordinal


cdef DeviceHandle device_at(int ordinal):
    """The object of a device that there is."""
    return <DeviceHandle>objects[ordinal]


cdef DeviceHandle device_of(core.Context* context):
    return device_at(context.device().ordinal())


cpdef DeviceHandle as_device(object device):
    """`device` as a Device: itself, an ordinal, or the calling thread's for None."""
    return device if isinstance(device, DeviceHandle) else device_at(known(device))
