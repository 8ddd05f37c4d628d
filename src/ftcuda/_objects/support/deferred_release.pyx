"""Objects that live until the work submitted with them is done, and calls of others' code that nobody waits for.

What others wrote, `deallocate` of a resource or a hook, is called by `close()`, whose caller knows what it does. All
other such calls are handed over to a thread of ftcuda's: a finalizer runs amid any code, in a collection or where some
reference happens to be the last, and the thread may hold the very lock there that `deallocate` takes.
"""

import _thread
import gc
from time import monotonic

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libcpp.utility cimport move
from libcpp.vector cimport vector

cimport core.completion.deferred_release as core
cimport core.completion.handover as handover
from core.device.device cimport Context, CUevent
from core.completion.deferred_release cimport ForeignReference, Retention
from core.sync.may_wait cimport may_wait
from core.sync.limit cimport Limit
from core.sync.reason cimport Reason, Status
from core.sync.ref cimport Ref, Shared
from ftcuda._objects.support.waiting cimport limit_of, pass_on

from ftcuda._objects.support.own_objects import end_own_objects

cdef extern from "Python.h":
    void Py_DECREF(PyObject* object)
    void PyErr_WriteUnraisable(object where)
    void PyErr_SetRaisedException(PyObject* error)  # takes the reference over
    int Py_IsFinalizing()

ctypedef PyObject* Reference

cdef extern from *:
    """
    #include <atomic>
    #include <utility>
    #include <vector>
    static thread_local int nested_releases = 0;  // in how many this thread is, of which each began the next
    static thread_local bool left_to_outermost = false;
    static thread_local bool is_collecting = false;    // the thread collects garbage
    static thread_local bool is_calling = false;       // it is in a call of others' code
    static thread_local bool is_releasing = false;     // it is ftcuda's, and lets go of what is over
    static thread_local std::size_t handed_over = 0;   // how many calls it did
    static thread_local std::vector<PyObject*> postponed;  // the calls that came up in that one, each with a reference
    static std::vector<PyObject*> take_postponed() { return std::exchange(postponed, {}); }
    // Without the GIL an object is ended by the thread that made it, when that runs again: the thread which makes the
    // calls may wait for the next one for ever. Relaxed: it guards no data; 0 where there is no such thread.
    static std::atomic<std::uintptr_t> calling_thread{0};
    #ifdef Py_GIL_DISABLED
    static void note_calling_thread() { calling_thread.store(_Py_ThreadId(), std::memory_order_relaxed); }
    static bool is_of_calling_thread(PyObject* wanted) {
        const std::uintptr_t maker = _Py_atomic_load_uintptr_relaxed(&wanted->ob_tid);
        return maker != 0 && maker == calling_thread.load(std::memory_order_relaxed) && maker != _Py_ThreadId();
    }
    #else
    static void note_calling_thread() {}
    static bool is_of_calling_thread(PyObject*) { return false; }
    #endif
    """
    void note_calling_thread()
    bint is_of_calling_thread(PyObject* wanted)
    int nested_releases
    bint left_to_outermost
    bint is_collecting
    bint is_calling
    bint is_releasing
    size_t handed_over
    vector[Reference] postponed
    vector[Reference] take_postponed()

cdef enum:
    DEEPEST_RELEASE = 50     # as CPython's own containers: chains of owners may be longer than any stack is deep
    MOST_HANDED_OVER = 4096  # above which who makes more of them waits a moment


cdef class PendingCall:
    cdef int call(self) except -1:
        """Makes the call, or defers it until its event is reached."""
        raise NotImplementedError()


def run_contained(function, *arguments, **keywords):
    """What `function` returns; an exception goes to `sys.unraisablehook`, because the caller has nothing to do with it.

    Every exception, as for a `__del__`: a KeyboardInterrupt too would end code of somebody who closed no buffer.
    """
    try:
        return function(*arguments, **keywords)
    except BaseException as error:
        write_unraisable(error, function)
        return None


cdef int write_unraisable(object error, object function) except -1:
    """Gives an exception of `function` to `sys.unraisablehook`."""
    Py_INCREF(error)
    PyErr_SetRaisedException(<PyObject*>error)
    PyErr_WriteUnraisable(function)
    return 0


# What is called when a collection is over, in its thread. Filled at import, constant afterwards.
AFTER_COLLECTIONS = []


def note_collection(phase, _):
    """One of `gc.callbacks`, which run in the thread that collects."""
    global is_collecting
    is_collecting = phase == "start"
    if not is_collecting:
        for function in AFTER_COLLECTIONS:
            function()


cdef bint amid_collection() noexcept nogil:
    """Whether the calling thread collects garbage."""
    return is_collecting


gc.callbacks.append(note_collection)


cdef Retention* retain(Retention& retention, object wanted) except NULL:
    """Retains `wanted` by `retention`, and returns that; once it is over, `release_done` lets go of `wanted`."""
    core.retain(retention, <void*>wanted)
    Py_INCREF(wanted)  # the core's; release_done() takes it over
    start_thread()  # which lets go of it if no later call does
    return &retention


cdef Ref[ForeignReference] foreign_reference(object wanted) except *:
    """A reference of the core's to `wanted`; who lets go of it last leaves that to `release_done`."""
    cdef Ref[ForeignReference] made = Ref[ForeignReference].adopt(new ForeignReference(<void*>wanted))
    Py_INCREF(wanted)  # the core's; release_done() takes it over
    start_thread()
    return made


cdef Ref[Shared] shared(Ref[ForeignReference] reference) noexcept:
    """The same, where the core takes whatever is counted."""
    return Ref[Shared](reference.get()[0])


cdef object object_of(Shared* reference):
    """What such a reference is to."""
    return <object><PyObject*>(<ForeignReference*>reference).object()


cdef int release_after(Context* context, CUevent event, object wanted) except -1:
    """Retains `wanted` until `event`, which is taken over, is reached."""
    cdef Retention retention
    retain(retention, wanted)
    with nogil:
        core.release_after(context[0], event, move(retention))
    return 0


cdef int release_done() except -1:
    """Lets go of objects whose work is done, and hands over the calls that come then."""
    cdef Reference found
    if not core.is_pending() and handover.unfinished() == 0:
        return 0
    if is_collecting or is_calling:
        return 0  # a later call does
    if handover.unfinished() != 0:
        start_thread()
        make_scheduled()
    # In a release that is too deep the outermost one comes to them.
    while core.is_pending() and nested_releases < DEEPEST_RELEASE:
        with nogil:
            found = <Reference>core.pop_done()
        if found == NULL:
            return 0
        if isinstance(<object>found, PendingCall):
            (<PendingCall>found)._event = NULL
            hand_over(found)
        else:
            let_go(found)
    return 0


cdef int let_go(Reference wanted) except -1:
    """Takes over a reference; if that is the last one, the object may end others."""
    global nested_releases
    if is_of_calling_thread(wanted):
        return hand_over(wanted)
    nested_releases += 1
    Py_DECREF(wanted)
    nested_releases -= 1
    return 0


cdef int release_holder(Context* context, void* holder, CUevent event, bint closing) except -1:
    """Takes over the `holder` that a buffer handed out, and its `event`.

    A call comes after the event: from here in `closing`, else from the thread. Anything else is let go of: here if the
    event is reached, for which `closing` waits; else in a later call of any thread.
    """
    global left_to_outermost
    cdef Retention retention
    cdef Reference reference = <Reference>holder
    cdef bint over = event == NULL
    if holder == NULL:
        return 0
    cdef bint is_call = isinstance(<object>reference, PendingCall)
    with nogil:
        if not over:
            over = core.is_over(context[0], event)
        if not over and closing and not is_call:
            over = True
            core.wait_for(context[0], event).ignore()  # a context that ended uses nothing any more
    if over:
        event = NULL
    if is_call:
        (<PendingCall>reference)._context = context
        (<PendingCall>reference)._event = event
        return make_or_hand_over(reference, closing)
    if over and (is_collecting or is_calling):
        return hand_over(reference)  # its finalizer is others' code too
    if not over or nested_releases >= DEEPEST_RELEASE:
        left_to_outermost = left_to_outermost or over
        with nogil:
            core.retain(retention, holder)
            core.release_after(context[0], event, move(retention))
        return start_thread()
    let_go(reference)
    if left_to_outermost and nested_releases == 0:
        left_to_outermost = False
        return release_done()
    return 0


cdef int make_call(PendingCall wanted, bint closing) except -1:
    """Makes a call that a `close()` asks for at once; see `make_or_hand_over`."""
    Py_INCREF(wanted)
    return make_or_hand_over(<Reference>wanted, closing)


cdef int make_or_hand_over(Reference call, bint closing) except -1:
    """Takes over a reference to a call. `closing`: it is what the thread's own code asked for."""
    if not closing or is_collecting:
        return hand_over(call)
    if is_calling:
        postponed.push_back(call)  # after that one, which may have locked what this one locks
        return 0
    return make(call)


cdef int make(Reference call) except -1:
    """Takes over a reference to a call, and makes it and those that come up meanwhile; what is no call is let go of."""
    global is_calling
    cdef vector[Reference] calls
    cdef Reference each
    calls.push_back(call)
    is_calling = True
    while not calls.empty():
        for each in calls:
            if isinstance(<object>each, PendingCall):
                run_contained(call_of, <object>each)
            Py_DECREF(each)  # may end others
        calls = take_postponed()
    is_calling = False
    return 0


def call_of(PendingCall wanted not None):
    """Makes a call."""
    wanted.call()


cdef int hand_over(Reference call) except -1:
    """Takes over a reference to a call, or to an object to let go of, for the thread."""
    global handed_over
    if Py_IsFinalizing():
        return 0  # what it needs may be empty by now
    handed_over += 1
    with nogil:
        handover.put(<void*>call)
    return start_thread()


cdef int start_thread() except -1:
    """Starts the thread, unless it runs. If there can be none, a later call tries again."""
    if handover.claim_thread():
        try:
            _thread.start_new_thread(make_handed_over, ())
        except RuntimeError:
            handover.give_claim_back()
    return 0


def make_handed_over():
    """What the thread runs; its end is that of the process."""
    cdef Reference call
    note_calling_thread()
    while True:
        with nogil:
            call = <Reference>handover.take()
        if call == NULL:
            run_contained(release_rest)
            handover.end_release()
            continue
        make(call)
        handover.finish()


def release_rest():
    """By the thread: lets go of what no other thread's calls have come to."""
    global is_releasing
    is_releasing = True
    try:
        release_done()
    finally:
        is_releasing = False


cdef int make_scheduled() except -1:
    """Makes the calls that the scheduler of a test has kept from the thread, which it does not know."""
    cdef Reference call
    while True:
        with nogil:
            call = <Reference>handover.take_scheduled()
        if call == NULL:
            return 0
        make(call)
        handover.finish()


cdef int give_way() except -1:
    """For who makes what the thread will give back: waits a moment if it cannot keep up."""
    cdef Limit limit
    if handover.unfinished() > MOST_HANDED_OVER and not is_calling:
        limit.seconds = 0.01
        with nogil:
            handover.wait_until_at_most(MOST_HANDED_OVER, limit).ignore()
    return 0


cdef bint give_back(double seconds) except -1:
    """Waits, so long at most, for the calls that were handed over; whether there were any."""
    cdef Limit limit
    if handover.unfinished() == 0 or is_calling or is_collecting:
        return False
    make_scheduled()
    limit.seconds = seconds
    with nogil:
        handover.adopt_scheduled()
        handover.wait_until_at_most(0, limit).ignore()
    return True


def wait_for_deallocations(timeout=None):
    """Waits until all memory that was dropped so far, and that no work uses any more, was given back to its resource.

    A buffer that is closed is given back by `close()`. One that is dropped is given back a moment later, by a thread of
    ftcuda's: `deallocate` of a resource written in Python, and hooks on frees, are never called amid other code.

    Parameters
    ----------
    timeout : float, optional
        Seconds after which to give up; None waits for ever.

    Thread safety: atomic. Blocks detached from the interpreter; hold no lock that `deallocate` takes, and no exclusive
    section.

    Raises
    ------
    TimeoutError
        A call of `deallocate` is not over yet, or a thread of ftcuda's has not freed yet what it took.
    RuntimeError
        In `deallocate` or a hook, for which it would wait itself, and in a function that a stream waits for.
    """
    cdef Limit limit = limit_of(timeout)
    cdef Status status
    cdef size_t before, unfinished
    cdef double end = monotonic() + limit.seconds
    if is_calling or is_collecting or is_releasing:
        raise RuntimeError("cannot wait for deallocations in deallocate, a hook or a finalizer: it is one of them")
    if may_wait().reason() == Reason.in_host_function:
        raise RuntimeError("cannot wait for deallocations in a function that a stream waits for")
    release_done()
    while True:
        before = handed_over
        with nogil:
            handover.adopt_scheduled()
            status = handover.wait_until_at_most(0, limit)
            if status.ok():
                status = core.wait_for_end(limit)
        if status.reason() == Reason.timed_out:
            unfinished = handover.unfinished() + core.is_ending()
            raise TimeoutError(f"deallocations are not over in time; {unfinished} are to be done")
        if status.reason() == Reason.interrupted:
            pass_on()
        limit.seconds = max(end - monotonic(), 0)
        end_own_objects()  # what was given back may have held more memory
        release_done()
        if handed_over == before and not core.is_ending():
            return None
