"""Waits that can end before what they wait for."""

from libcpp cimport bool as c_bool

from core.sync.limit cimport Limit

from ftcuda._objects.support.main_thread import MAIN_THREAD

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()
    int PyErr_CheckSignals() noexcept

cdef unsigned long main_thread = MAIN_THREAD  # constant


cdef c_bool is_interrupted() noexcept nogil:
    with gil:
        # What a handler raised stays set until the core's call has come back: see raise_status().
        return PyErr_CheckSignals() != 0


cdef Limit limit_of(object timeout) except *:
    """What a wait of the calling thread may end by: `timeout` seconds if not None, and in the main thread signals."""
    cdef Limit limit
    cdef double seconds
    if timeout is not None:
        if isinstance(timeout, bool):
            raise TypeError("timeout must be seconds or None, not bool")
        seconds = timeout  # a number: float() takes texts too
        if not seconds >= 0:
            raise ValueError(f"timeout must be seconds from 0 up, or None to wait for ever, not {timeout!r}")
        limit.seconds = seconds
    if PyThread_get_thread_ident() == main_thread:
        limit.is_interrupted = is_interrupted
    return limit


cdef int pass_on() except -1:
    """Raises what a signal's handler raised during a wait, which is set already."""
    return -1
