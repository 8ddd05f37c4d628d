"""Waits of event loops for work, and functions that are called when work is done."""

import os
import sys
from errno import ENOSYS
from functools import partial
from weakref import ref

from libc.stdint cimport uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.list cimport list as cpp_list
from libcpp.memory cimport unique_ptr
from libcpp.utility cimport move

cimport core.completion.inbox as core
from core.completion.completion cimport Awaited, Waiter
from core.completion.polled cimport PolledCompletion
from core.completion.reactor cimport Pace, Reactor
from core.completion.when_done cimport WhenDoneWaiter
from core.device.device cimport Context
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.support.deferred_release cimport foreign_reference
from ftcuda._objects.support.raising cimport check, refuse_to_wait, release_and_warn
from ftcuda._objects.support.when_done cimport WhenDone, failure_of, start_thread

from ftcuda._objects.stream.loops import LoopWait, TrioWait, resumed, settle


cdef enum:
    MOST_CONFIDENCE = 4    # so many long waits end it
    RETRIAL = 16           # of waits without confidence one in so many is looked at
    MOST_AT_ONCE = 8       # waits that end at once; then other tasks go on


cdef class Over:
    """The rest of a wait that is over: nothing, or a moment in which other tasks of the loop go on."""

    cdef object _subject    # what was awaited
    cdef bint _pauses

    @staticmethod
    cdef Over of(object subject, bint pauses):
        cdef Over made = Over.__new__(Over)
        made._subject, made._pauses = subject, pauses
        return made

    def __iter__(self):
        return self

    def __next__(self):
        if self._pauses:
            self._pauses = False
            return None
        raise StopIteration(self._subject)


cdef class LoopInbox:
    """What is over for one asyncio loop. The loop has it, as a reader; who waits finds it by the loop."""

    cdef core.Inbox* _inbox      # constant
    cdef dict _pending           # by number: the future, and what is awaited. Of the loop's thread
    cdef uint64_t _latest        # of the loop's thread
    cdef int _confidence         # of the loop's thread: that the next wait is short
    cdef int _at_once            # of the loop's thread: how many waits in a row let no other task go on
    cdef object __weakref__

    def __dealloc__(self):
        if self._inbox != NULL:
            with nogil:
                self._inbox.close()
                self._inbox.release()

    cdef bint may_look(self):
        """Whether this thread may look for a moment itself: nobody else waits, and the waits before were short."""
        return len(self._pending) == 0 and (self._confidence > 0 or self._latest % RETRIAL == 0)

    cdef object looked(self, bint is_over, object subject):
        """What `__await__` returns if that was enough; else None."""
        self._confidence = min(self._confidence + 1, MOST_CONFIDENCE) if is_over else max(self._confidence - 1, 0)
        if not is_over:
            return None
        self._at_once = (self._at_once + 1) % MOST_AT_ONCE
        return Over.of(subject, self._at_once == 0)

    def deliver(self):
        """Called by the loop when something is over."""
        cdef cpp_list[core.Finished] finished
        with nogil:
            finished = self._inbox.take()
        try:
            while not finished.empty():
                self.end(finished.front())
                finished.pop_front()
        finally:
            if not finished.empty():  # a signal's handler has raised something
                with nogil:
                    self._inbox.put(finished)

    cdef int end(self, core.Finished over) except -1:
        """Perhaps for the second time, if the first one was interrupted."""
        pending = self._pending.get(over.number)
        if pending is not None:
            future, subject = pending
            if not future.done():
                settle(future, failure_of(over.status, "await", subject))
            self._pending.pop(over.number, None)
        return 0


cdef object found_in(object shared, object key):
    """What a dict has, or None. Not by `get`, for which CPython 3.13 without the GIL takes the dict's lock: all awaits
    of all threads would meet there."""
    if key not in shared:
        return None
    try:
        return shared[key]
    except KeyError:  # it was just removed
        return None


cdef object imported(str name):
    """The module, or None."""
    return found_in(sys.modules, name)


# The inboxes of loops, by the loop's id, with weak references to both. The steps of a dictionary are atomic, which is
# all that is asked of them: only its own thread asks for a loop.
INBOXES = {}


cdef LoopInbox inbox_of(object loop):
    """None where there is no eventfd, or the loop takes no readers."""
    cdef Ref[core.Inbox] made
    cdef int error
    cdef LoopInbox found
    number = id(loop)
    if (known := found_in(INBOXES, number)) is not None and known[0]() is loop:
        found = known[1]()
        if found is not None:
            return found
    error = core.Inbox.open(made)
    if error == ENOSYS:
        return None
    if error != 0:
        raise OSError(error, os.strerror(error))
    found = LoopInbox.__new__(LoopInbox)
    found._pending = {}
    found._confidence = MOST_CONFIDENCE
    found._inbox = made.detach()
    try:
        loop.add_reader(found._inbox.descriptor(), found.deliver)
    except (AttributeError, NotImplementedError):
        return None
    INBOXES[number] = ref(loop, lambda gone: forget(number, gone)), ref(found)
    return found


def forget(number, gone):
    """The loop is gone; another one may have its place."""
    known = INBOXES.get(number)
    if known is not None and known[0] is gone:
        INBOXES.pop(number, None)


cdef class PolledWait:
    """A wait of a thread that a test schedules."""

    cdef PolledCompletion* _completion    # constant

    def __dealloc__(self):
        del self._completion

    cdef bint is_over(self, object subject) except -1:
        cdef Status status
        with nogil:
            status = self._completion.ask()
        if status.code() == 600:
            return False
        check(status, "await", subject)
        return True


def polled(PolledWait wait not None, subject):
    """Lets other tasks of the loop go on until it is over."""
    while not wait.is_over(subject):
        yield
    return subject


cdef bint begin(object subject, Context* context, Awaited* awaited, Waiter* waiter, bint looks=False) except -1:
    """Tells `waiter`, which it takes over, when the work is done; with `looks`, unless it is done now: then True."""
    cdef Status status
    cdef unique_ptr[Waiter] mine
    cdef cpp_bool is_over = False
    mine.reset(waiter)
    with nogil:
        if looks:
            status = Reactor.only().begin(awaited[0], context[0], move(mine), is_over)
        else:
            status = Reactor.only().begin(awaited[0], context[0], move(mine))
    check(status, "await", subject)
    return is_over


cdef object running_trio():
    """None unless a task of trio's calls."""
    trio = imported("trio")
    in_trio_task = None if trio is None else getattr(getattr(trio, "lowlevel", None), "in_trio_task", None)
    return trio if in_trio_task is not None and in_trio_task() else None


cdef object running_loop(object subject):
    """The calling thread's loop of asyncio."""
    asyncio = imported("asyncio")  # who has not imported it has no loop
    find_loop = getattr(asyncio, "_get_running_loop", None)
    loop = None if find_loop is None else find_loop()
    if loop is None:
        raise RuntimeError(f"cannot await {subject}: neither an asyncio loop nor trio runs in this thread")
    release_and_warn()
    return loop


cdef object until_done(object subject, Context* context, Awaited* awaited):
    """What `__await__` returns: it gives `subject` when the work is done."""
    refuse_to_wait("await", subject)  # where asyncio knows no loop
    trio = running_trio()
    if trio is not None:
        wait = TrioWait(trio)
        begin_call(subject, wait.tell, None, context, awaited)
        return wait.resumed(subject)
    loop = running_loop(subject)
    if PolledCompletion.is_wanted():
        return polled(polled_wait(subject, context, awaited), subject)
    cdef LoopInbox inbox = inbox_of(loop)
    if inbox is None:
        wait = LoopWait(loop)
        begin_call(subject, wait.tell, None, context, awaited)
        return resumed(wait.future, subject)
    inbox._latest += 1
    cdef uint64_t number = inbox._latest
    cdef bint looks = inbox.may_look()
    future = loop.create_future()
    inbox._pending[number] = (future, subject)
    try:
        waiter = new core.InboxWaiter(Ref[core.Inbox](inbox._inbox[0]), number)
        is_over = begin(subject, context, awaited, waiter, looks)
    except BaseException:
        del inbox._pending[number]
        raise
    if looks and (over := inbox.looked(is_over, subject)) is not None:
        del inbox._pending[number]
        return over
    return resumed(future, subject)


cdef class Ending:

    cdef int tell(self, Waiter* waiter) except -1:
        raise NotImplementedError

    cdef bint is_over(self) noexcept:
        return False


def polled_ending(Ending ending not None):
    """Lets other tasks of the loop go on until it is over."""
    while not ending.is_over():
        yield


cdef object until_told(object subject, Ending ending):
    """What `__await__` waits by, until it is over, however it ended."""
    refuse_to_wait("await", subject)
    trio = running_trio()
    if trio is not None:
        wait = TrioWait(trio)
        start_thread()
        ending.tell(new WhenDoneWaiter(foreign_reference(WhenDone(subject, wait.tell, None))))
        return wait.resumed(subject)
    loop = running_loop(subject)
    if PolledCompletion.is_wanted():
        return polled_ending(ending)
    cdef LoopInbox inbox = inbox_of(loop)
    if inbox is None:
        wait = LoopWait(loop)
        start_thread()
        ending.tell(new WhenDoneWaiter(foreign_reference(WhenDone(subject, wait.tell, None))))
        return wait.future.__await__()
    inbox._latest += 1
    cdef uint64_t number = inbox._latest
    future = loop.create_future()
    inbox._pending[number] = (future, subject)
    try:
        ending.tell(new core.InboxWaiter(Ref[core.Inbox](inbox._inbox[0]), number))
    except BaseException:
        inbox._pending.pop(number)
        raise
    return future.__await__()


cdef int call_told(object fn, Ending ending) except -1:
    """Has the thread for callbacks call `fn` with what has ended."""
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    release_and_warn()
    start_thread()
    call = partial(fn, ending)
    ending.tell(new WhenDoneWaiter(foreign_reference(WhenDone(ending, call, place_of_caller()))))
    return 0


cdef PolledWait polled_wait(object subject, Context* context, Awaited* awaited):
    cdef Status status
    cdef PolledWait wait = PolledWait.__new__(PolledWait)
    wait._completion = new PolledCompletion(context[0])
    with nogil:
        status = wait._completion.begin(awaited[0])
    check(status, "await", subject)
    return wait


cdef int begin_call(object subject, object fn, str place, Context* context, Awaited* awaited) except -1:
    """Has the thread for callbacks call `fn`: when the work is done; without a `place` also when it has failed."""
    start_thread()
    begin(subject, context, awaited, new WhenDoneWaiter(foreign_reference(WhenDone(subject, fn, place))))
    return 0


cdef int call_when_done(object subject, object fn, Context* context, Awaited* awaited) except -1:
    """The method `when_done` of what is awaited, which its caller called."""
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    release_and_warn()  # first: if that is an error nothing was begun
    return begin_call(subject, fn, place_of_caller(), context, awaited)


cdef str place_of_caller():
    """Where Python's code is: neither this function nor what called it is any of that."""
    try:
        caller = sys._getframe(0)
    except ValueError:
        return "the begin of a thread"
    return f"{caller.f_code.co_filename}:{caller.f_lineno}"


def set_pace(wanted):
    """How the service that looks for what is over paces itself, by the name in FTCUDA_REACTOR."""
    if wanted == "":
        Reactor.only().set_pace(Pace.adapted)
    elif wanted == "spin":
        Reactor.only().set_pace(Pace.spinning)
    elif wanted == "sleep":
        Reactor.only().set_pace(Pace.sleeping)
    else:
        raise ValueError(f"FTCUDA_REACTOR must be spin, sleep or nothing, not {wanted!r}")


set_pace(os.environ.get("FTCUDA_REACTOR", ""))
