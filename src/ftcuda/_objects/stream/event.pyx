"""Events."""

cimport core.stream.event as core
from core.device.device cimport Context
from core.stream.capture_session cimport CaptureSession
from core.sync.limit cimport Limit
from core.sync.ref cimport Ref
from libcpp cimport bool
from core.sync.reason cimport Status
from ftcuda._objects.device.device_handle cimport DeviceHandle, device_of
from ftcuda._objects.stream.awaiting cimport call_when_done, until_done
from ftcuda._objects.support.raising cimport check, release_and_warn, raise_status, refuse_to_make
from ftcuda._objects.support.waiting cimport limit_of

from ftcuda._objects.support.options import EventOptions, checked, refuse_ipc


cdef class Event:
    """A point in a stream's work. Made by :meth:`Device.create_event` or :meth:`Stream.record`.

    ``end - start`` is the time between two reached events in milliseconds.
    """

    _made = "events are made by Device.create_event() or Stream.record()"

    def __dealloc__(self):
        if self._event != NULL:
            with nogil:
                self._event.close()
                self._event.release()

    @staticmethod
    cdef Event create(DeviceHandle device, object options, CaptureSession* session):
        cdef Ref[core.Event] made
        cdef Status status
        options = checked(options, EventOptions)
        refuse_ipc(options)
        cdef unsigned flags = 0 if options.timing_enabled else core.CU_EVENT_DISABLE_TIMING
        if options.blocking_sync:
            flags |= core.CU_EVENT_BLOCKING_SYNC
        cdef Context* context = device.context_of()
        with nogil:
            status = core.Event.create(context[0], flags, session, made)
        check(status, "create an event on", device)
        cdef Event event = Event.__new__(Event)
        event._event = made.detach()
        return event

    @property
    def handle(self):
        """The ``CUevent`` as an integer; 0 once closed. Thread safety: atomic."""
        return 0 if self._event.is_closed() else <size_t>self._event.share_cu_event()

    @property
    def device(self):
        """The event's device. Thread safety: atomic."""
        return device_of(&self._event.context())

    @property
    def is_timing_enabled(self):
        """Whether the event keeps time. Thread safety: atomic."""
        return (self._event.flags() & core.CU_EVENT_DISABLE_TIMING) == 0

    @property
    def is_blocking_sync(self):
        """Whether :meth:`sync` sleeps instead of spinning. Thread safety: atomic."""
        return (self._event.flags() & core.CU_EVENT_BLOCKING_SYNC) != 0

    @property
    def is_ipc_enabled(self):
        """Whether other processes can have the event: never, since ftcuda has no IPC yet. Thread safety: atomic."""
        return False

    @property
    def is_closed(self):
        """Whether :meth:`close` was called. Thread safety: atomic."""
        return self._event.is_closed()

    @property
    def is_done(self):
        """Whether all work before the latest record is done; True for an event never recorded.

        Asks the driver until it is, and does not wait. After :attr:`handle` was read, by which others may record, it
        asks every time. Thread safety: atomic.
        """
        if self._event.is_known_done():
            return True
        cdef Status status
        cdef bint done = False
        cdef bool answer = False
        with nogil:
            status = self._event.query(answer)
        check(status, "query", self)
        done = answer
        return done

    def sync(self, timeout=None):
        """Waits until all work before the latest record is done.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to give up; None waits for ever.

        Thread safety: atomic. Blocks detached from the interpreter. In the main thread a signal's handler runs
        meanwhile, and what it raises, `KeyboardInterrupt` say, ends the wait. However the wait ends, the work goes on,
        and what it uses is kept.

        Raises
        ------
        TimeoutError
            The work is not done yet.
        CUDAError
            Also for failures of earlier work.
        """
        cdef Status status
        cdef Limit limit = limit_of(timeout)
        with nogil:
            status = self._event.synchronize(limit)
        check(status, "synchronise", self)
        release_and_warn()

    def __await__(self):
        """Resumes when all work before the latest record is done; gives the event itself.

        In an asyncio loop, or a task of trio. The thread of the loop is never blocked. A record that comes
        later does not matter, and an event never recorded is done. Cancelling the wait lets the work go on, and what it
        uses is kept.

        Thread safety: atomic.

        Raises
        ------
        CUDAError
            The context failed; or the event is part of a capture.
        RuntimeError
            Neither asyncio nor trio runs in this thread.
        """
        return until_done(self, &self._event.context(), self._event)

    def when_done(self, fn):
        """Calls a function when all work before the latest record is done.

        Parameters
        ----------
        fn : callable
            Called without arguments, by the thread of ftcuda's that makes such calls one after the other. No stream
            waits for it, and it may call what it likes. What it raises goes to `sys.unraisablehook`, with the place of
            this call. If the context fails before, `fn` is not called, and the failure goes there. At exit what was not
            called yet never is.

        Thread safety: atomic.

        Raises
        ------
        CUDAError
            The context has failed; or the event is part of a capture.
        """
        call_when_done(self, fn, &self._event.context(), self._event)

    def close(self):
        """Destroys the event; calls in progress in other threads complete first. Idempotent.

        Thread safety: atomic.
        """
        with nogil:
            self._event.close()
        release_and_warn()

    def __sub__(self, other):
        cdef Status status
        cdef float milliseconds = 0
        if not isinstance(self, Event) or not isinstance(other, Event):
            return NotImplemented
        cdef Event end = self
        cdef Event start = other
        for event in (start, end):
            if not event.is_closed and not event.is_timing_enabled:
                raise RuntimeError(f"cannot time with {event}: create it with EventOptions(timing_enabled=True)")
        with nogil:
            status = core.Event.elapsed(start._event[0], end._event[0], milliseconds)
        if status.code() == 600:
            raise RuntimeError(
                f"cannot time from {start} to {end}: not both are reached; synchronise the later one first"
            )
        if status.code() == 400:
            raise RuntimeError(
                f"cannot time from {start} to {end}: not both are recorded; record them in a stream first"
            )
        if not status.ok():
            raise_status(status, "time", f"from {start} to {end}",
                         (("the earlier event", start), ("the later event", end)))
        return milliseconds

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return hash((Event, <size_t>self._event))

    def __repr__(self):
        return f"<Event {<size_t>self._event.cu_event():#x}{' closed' if self._event.is_closed() else ''}>"


refuse_to_make(Event)
