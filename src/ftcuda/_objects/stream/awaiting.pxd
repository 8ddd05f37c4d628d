from core.completion.completion cimport Awaited, Waiter
from core.device.device cimport Context

cdef object imported(str name)
cdef object until_done(object subject, Context* context, Awaited* awaited)
cdef object until_told(object subject, Ending ending)
cdef int call_told(object fn, Ending ending) except -1
cdef int call_when_done(object subject, object fn, Context* context, Awaited* awaited) except -1


cdef class Ending:
    """What ends by itself, and tells of it: no work of the driver's, of which the reactor knows."""
    cdef object __weakref__

    cdef int tell(self, Waiter* waiter) except -1  # takes it over; tells of a success, however it ended
    cdef bint is_over(self) noexcept
