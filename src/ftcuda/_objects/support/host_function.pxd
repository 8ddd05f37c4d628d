from core.completion.deferred_release cimport Retention
from core.completion.host_call cimport CUhostFn


# What the driver is to call, and what with.
cdef struct HostFunction:
    CUhostFn function
    void* user_data


cdef HostFunction host_function(object fn, object user_data, Retention& retention) except *
