"""Functions that a thread of ftcuda's calls when work is done: see when_done.hpp."""

import _thread
from contextlib import suppress

from cpython.object cimport PyObject

cimport core.completion.when_done as core
from core.sync.fork cimport is_forked
from core.sync.reason cimport Status
from ftcuda._objects.support.deferred_release cimport write_unraisable
from ftcuda._objects.support.raising cimport check

from ftcuda._objects.support.deferred_release import run_contained


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
    cdef core.Call call
    while True:
        with nogil:
            call = core.take()
        wanted = <object><PyObject*>call.function
        try:
            (<WhenDone>wanted).call(call.status)
        except BaseException as error:  # who waits for the next call would wait for ever
            write_unraisable(error, wanted)
        wanted = None
        if is_forked():
            return  # the function forked, and this is the child


cdef object failure_of(Status status, str verb, object subject):
    """What `status` is raised as; None for a success."""
    try:
        check(status, verb, subject)
    except BaseException as error:
        return error
    return None


cdef class WhenDone:
    """A function that the thread calls when work is done.

    With a `place`, where the user said so, it is called without arguments and only if the work is done. Without one it
    is ftcuda's own, and told of the failure, or None.
    """

    def __cinit__(self, subject, function, str place):
        self._subject, self._function, self._place = subject, function, place

    cdef int call(self, Status status) except -1:
        error = failure_of(status, "await", self._subject)
        function, self._function, self._subject = self._function, None, None
        if self._place is None:
            run_contained(function, error)
        else:
            run_noted(function, error, f"in a function that when_done() was given at {self._place}")
        return 0


def run_noted(function, error, note):
    """Calls `function`, or has failed by `error` already. The exception goes to `sys.unraisablehook` with a note."""
    try:
        if error is not None:
            raise error
        function()
    except BaseException as raised:
        with suppress(BaseException):  # there are exceptions that take none
            raised.add_note(note)
        write_unraisable(raised, function)
