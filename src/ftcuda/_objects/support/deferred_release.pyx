"""Objects that live until the work submitted with them is done, and the calls of foreign code that no caller waits for.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

cimport core.stream.deferred_release as core
from core.device.device cimport Context
from core.stream.event cimport CUevent
from core.stream.stream cimport Stream

cdef extern from "Python.h":
    void PyErr_WriteUnraisable(object where)
    void PyErr_SetRaisedException(PyObject* error)  # takes the reference over

cdef extern from *:
    """
    static thread_local int nested_releases = 0;  // in how many this thread is, of which each began the next
    static thread_local bool left_to_outermost = false;
    """
    int nested_releases
    bint left_to_outermost

cdef enum: DEEPEST_RELEASE = 50  # as CPython's own containers: chains of owners may be longer than any stack is deep


cdef class PendingDeallocation:
    cdef int deallocate(self, Context* context, CUevent event) except -1:
        """Gives the memory back, after `event`, which is taken over, where work may still use it; null where none does.
        """
        raise NotImplementedError()


def run_contained(function, *arguments, **keywords):
    """What `function` returns; an exception goes to `sys.unraisablehook`, because the caller has nothing to do with it.

    Every exception, as for a `__del__`: a KeyboardInterrupt too would end code of somebody who closed no buffer.
    """
    try:
        return function(*arguments, **keywords)
    except BaseException as error:
        Py_INCREF(error)
        PyErr_SetRaisedException(<PyObject*>error)
        PyErr_WriteUnraisable(function)
        return None


cdef int defer_release(Stream* stream, object wanted) except -1:
    """Keeps `wanted` until what was submitted to `stream` so far is done."""
    Py_INCREF(wanted)  # the core's; release_done() takes it over
    with nogil:
        core.defer(stream[0], <void*>wanted)
    return 0


cdef int defer_release_until(Context* context, CUevent event, object wanted) except -1:
    """Keeps `wanted` until `event`, which is taken over, is reached."""
    Py_INCREF(wanted)
    with nogil:
        core.defer(context[0], event, <void*>wanted)
    return 0


cdef int release_done() except -1:
    """Lets go of objects whose work is done, and gives memory back to resources that are written in Python."""
    cdef void* found
    # In a release that is too deep the outermost one comes to them.
    while core.is_pending() and nested_releases < DEEPEST_RELEASE:
        with nogil:
            found = core.pop_done()
        if found == NULL:
            return 0
        release(found, NULL, NULL)
    return 0


cdef int release(void* reference, Context* context, CUevent event) except -1:
    """Takes over a reference, and lets go of the object, which may end others; memory is given back after `event`."""
    global nested_releases
    nested_releases += 1
    try:
        wanted = <object>reference
        Py_DECREF(wanted)
        if isinstance(wanted, PendingDeallocation):
            (<PendingDeallocation>wanted).deallocate(context, event)
        elif event != NULL:
            defer_release_until(context, event, wanted)
        wanted = None
    finally:
        nested_releases -= 1
    return 0


cdef int release_holder(Context* context, void* holder, CUevent event, bint waits) except -1:
    """Lets go of the `holder` that a buffer handed out, which is taken over, as is `event`.

    At once if that is reached, or if this call `waits` for it, else in a later call of any thread.
    """
    global left_to_outermost
    cdef bint over = event == NULL
    if holder == NULL:
        return 0
    with nogil:
        if not over:
            over = core.is_over(context[0], event)
        if not over and waits:
            over = True
            core.wait_for(context[0], event).ignore()  # a context that ended uses nothing any more
    if over:
        event = NULL
    if nested_releases >= DEEPEST_RELEASE:
        left_to_outermost = True
        with nogil:
            core.defer(context[0], event, holder)
        return 0
    release(holder, context, event)
    if left_to_outermost and nested_releases == 0:
        left_to_outermost = False
        return release_done()
    return 0
