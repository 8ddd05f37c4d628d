"""Functions of the host's that the driver calls in the order of a stream.

Those written in Python are called by a thread of ftcuda's, for which the driver's waits: see host_call.hpp.
"""

import _thread
import ctypes

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject

cimport core.completion.host_call as core
from core.completion.deferred_release cimport Retention
from core.completion.host_call cimport CUhostFn
from core.sync.fork cimport is_forked
from ftcuda._objects.support.deferred_release cimport foreign_reference, retain

from ftcuda._objects.support.deferred_release import run_contained
from ftcuda._objects.support.handles import checked_handle


cdef HostFunction host_function(object fn, object user_data, Retention& retention) except *:
    """What the driver calls for `fn`, which lives as long as `retention`."""
    cdef HostFunction found
    if isinstance(fn, ctypes._CFuncPtr):
        return native_function(fn, user_data, retention)
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    if user_data is not None:
        raise ValueError("user_data is for function pointers of ctypes; a callable may be a closure or a partial")
    start_thread()
    found.function = core.HostCall.run
    found.user_data = core.HostCall.make(retention, foreign_reference(fn))
    return found


cdef HostFunction native_function(object fn, object user_data, Retention& retention) except *:
    """A function pointer of ctypes, which the driver calls itself. What it is told is a number, or a copy of bytes."""
    cdef HostFunction found
    cdef size_t address = ctypes.cast(fn, ctypes.c_void_p).value or 0
    cdef size_t number = 0
    if address == 0:
        raise ValueError("fn is a null pointer")
    if fn.restype is not None or tuple(fn.argtypes or ()) != (ctypes.c_void_p,):
        raise TypeError("fn must be of the prototype ctypes.CFUNCTYPE(None, ctypes.c_void_p)")
    if user_data is None:
        retain(retention, fn)
    elif isinstance(user_data, int):
        number = checked_handle(user_data, "user_data")
        retain(retention, fn)
    else:
        try:
            view = memoryview(user_data)
        except TypeError:
            raise TypeError(f"user_data must be an int or bytes-like, not {type(user_data).__name__}") from None
        if "O" in view.format:
            raise TypeError("user_data must not be of Python objects: a copy of their addresses keeps none of them")
        copied = bytes(view)
        number = <size_t>PyBytes_AS_STRING(copied)
        retain(retention, (fn, copied))
    found.function = <CUhostFn>address
    found.user_data = <void*>number
    return found


cdef int start_thread() except -1:
    """Starts the thread that calls, unless it runs."""
    if core.claim_thread():
        try:
            _thread.start_new_thread(call_for_ever, ())
        except BaseException:
            core.give_claim_back()
            raise
    return 0


def call_for_ever():
    """What the thread runs; its end is that of the process."""
    cdef void* taken
    while True:
        with nogil:
            taken = core.take()
        function = <object><PyObject*>taken
        run_contained(function)
        function = None
        if is_forked():
            return  # the function forked, and this is the child
