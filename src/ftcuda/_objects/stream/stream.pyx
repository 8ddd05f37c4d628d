"""Streams."""

from weakref import WeakKeyDictionary, WeakValueDictionary

from libc.stdint cimport uint64_t
from libcpp cimport bool

cimport core.stream.stream as core
from core.device.device cimport Context
from core.sync.limit cimport Limit
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport DeviceHandle, as_device, device_of
from ftcuda._objects.stream.awaiting cimport call_when_done, imported, until_done
from ftcuda._objects.stream.event cimport Event
from ftcuda._objects.support.deferred_release cimport foreign_reference, release_done
from ftcuda._objects.support.driver cimport require_driver
from ftcuda._objects.support.raising cimport (
    check, noun_of, raise_status, refuse_in_host_function, refuse_to_make, release_and_warn,
)
from ftcuda._objects.support.waiting cimport limit_of

from ftcuda._objects.support.handles import checked_handle, handle_of
from ftcuda._objects.support.options import StreamOptions, checked, integer
from ftcuda.errors import ClosedError


cdef class Stream:
    """A queue of work on one device, run in the order of submission.

    Made by :meth:`Device.create_stream`. Calls from several threads are submitted in some total order;
    ``with stream.exclusive():`` makes a sequence of them contiguous.
    """

    _made = "streams are made by Device.create_stream() or Stream.from_handle()"

    def __dealloc__(self):
        if self._stream != NULL:
            with nogil:
                self._stream.close()
                self._stream.release()
            release_done()  # the owner of a foreign stream

    @staticmethod
    cdef Stream adopt(core.Stream* made):
        cdef Stream stream = Stream.__new__(Stream)
        stream._stream = made
        return stream

    @staticmethod
    cdef Stream create(DeviceHandle device, object obj, object options):
        cdef Ref[core.Stream] made
        cdef Status status
        cdef int least = 0, greatest = 0, priority = 0
        if obj is not None:
            if options is not None:
                raise ValueError("a stream is wrapped as it is: give obj or options, not both")
            stream = as_stream(obj)
            if (<Stream>stream)._stream == NULL:  # the default stream, of whatever device is asked for: of this one
                return Stream.default_of(device, (<Stream>stream)._token == core.CU_STREAM_PER_THREAD)
            if stream.device != device:
                raise ValueError(f"cannot wrap {stream}: it belongs to {stream.device}, not {device}")
            return stream
        options = checked(options, StreamOptions)
        cdef unsigned flags = core.CU_STREAM_NON_BLOCKING if options.nonblocking else core.CU_STREAM_DEFAULT
        cdef Context* context = device.context_of()
        if options.priority is not None:
            wanted = integer(options.priority, "priority")
            with nogil:
                status = context.priority_range(least, greatest)
            check(status, "create a stream on", device)
            if not greatest <= wanted <= least:
                raise ValueError(f"priority must be from {greatest} (served first) to {least}, not {wanted}")
            priority = wanted
        with nogil:
            status = core.Stream.create(context[0], flags, priority, made)
        check(status, "create a stream on", device)
        return Stream.adopt(made.detach())

    @staticmethod
    def from_handle(handle):
        """Wraps a stream that other code owns, and keeps until the last buffer or graph that was used there is gone.

        Parameters
        ----------
        handle : int or CUstream
            Of a ``CUstream`` or ``cudaStream_t``. 0 and 1 are the legacy default stream, 2 is the per-thread one, of
            whatever device they are used with.

        Thread safety: atomic.
        """
        return wrap(checked_handle(handle, "handle"), None)

    @staticmethod
    def _default(bint per_thread):
        """The default stream of whatever device it is used with."""
        cdef Stream stream = Stream.__new__(Stream)
        stream._token = core.CU_STREAM_PER_THREAD if per_thread else core.CU_STREAM_LEGACY
        return stream

    @staticmethod
    cdef Stream default_of(DeviceHandle device, bint per_thread):
        cdef Stream token = Stream._default(per_thread)
        cdef core.Stream* found = token.on(device.context_of())
        found.retain()
        return Stream.adopt(found)

    cdef core.Stream* on(self, Context* context) except NULL:
        """The core's stream; for a default stream that of `context`, or of the calling thread's device if null."""
        cdef core.Stream* found = NULL
        cdef Status status
        if self._stream != NULL:
            return self._stream
        if context == NULL:
            context = as_device(None).context_of()
        with nogil:
            status = core.Stream.find_default(context[0], self._token, found)
        check(status, "use", self)
        return found

    def __cuda_stream__(self):
        """Returns ``(0, handle)``, the protocol by which other libraries take the stream. Thread safety: atomic.

        Raises
        ------
        ClosedError
            The handle may be another stream's by now.
        """
        return 0, self.handle

    @property
    def handle(self):
        """The ``CUstream`` as an integer. Thread safety: atomic.

        Raises
        ------
        ClosedError
            The handle may be another stream's by now, and 0 would be the legacy default stream.
        """
        if self.is_closed:
            raise ClosedError(f"cannot give the handle of {self} away: it is closed")
        refuse_in_host_function("give the handle away of", self)  # it may wait for who arms a completion
        return self.share()

    cdef size_t share(self) noexcept:
        """The handle, for others, who may capture the stream."""
        cdef size_t shared
        if self._stream == NULL:
            return <size_t>self._token
        with nogil:  # it may wait for a thread that arms a completion
            shared = <size_t>self._stream.share_cu_stream()
        return shared

    cdef size_t number(self) noexcept:
        return <size_t>(self._token if self._stream == NULL else self._stream.cu_stream())

    @property
    def device(self):
        """The stream's device. Thread safety: atomic."""
        return device_of(&self.on(NULL).context())

    @property
    def is_nonblocking(self):
        """Whether the stream does not wait for the legacy default stream. Thread safety: atomic."""
        return (self.on(NULL).flags() & core.CU_STREAM_NON_BLOCKING) != 0

    @property
    def priority(self):
        """Smaller numbers are served first. Thread safety: atomic."""
        return self.on(NULL).priority()

    @property
    def is_closed(self):
        """Whether :meth:`close` was called. Thread safety: atomic."""
        return self._stream != NULL and self._stream.is_closed()

    @property
    def is_done(self):
        """Whether all submitted work is done. Asks the driver, and does not wait. Thread safety: atomic."""
        cdef Status status
        cdef bool done = False
        cdef core.Stream* stream = self.on(NULL)
        with nogil:
            status = stream.query(done)
        check(status, "query", self)
        return bool_of(done)

    def sync(self, timeout=None):
        """Waits for all submitted work.

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
        cdef core.Stream* stream = self.on(NULL)
        with nogil:
            status = stream.synchronize(limit)
        check(status, "synchronise", self)
        release_and_warn()

    def __await__(self):
        """Resumes when all work submitted so far is done; gives the stream itself.

        In an asyncio loop, or a task of trio. The thread of the loop is never blocked. Cancelling the wait lets the
        work go on, and what it uses is kept.

        Thread safety: atomic. Like :meth:`sync` it waits for no exclusive section.

        Raises
        ------
        CUDAError
            The context failed; or the stream is being captured.
        RuntimeError
            Neither asyncio nor trio runs in this thread.
        """
        cdef core.Stream* stream = self.on(NULL)
        return until_done(self, &stream.context(), stream)

    def when_done(self, fn):
        """Calls a function when all work submitted so far is done.

        Parameters
        ----------
        fn : callable
            Called without arguments, by the thread of ftcuda's that makes such calls one after the other. No stream
            waits for it, and it may call what it likes. What it raises goes to `sys.unraisablehook`, with the place of
            this call. If the context fails before, `fn` is not called, and the failure goes there. At exit what was not
            called yet never is.

        Thread safety: atomic. Like :meth:`sync` it waits for no exclusive section.

        Raises
        ------
        CUDAError
            The context has failed; or the stream is being captured.
        """
        cdef core.Stream* stream = self.on(NULL)
        call_when_done(self, fn, &stream.context(), stream)

    def record(self, event=None, options=None):
        """Records an event behind the work submitted so far.

        Parameters
        ----------
        event : Event, optional
            Recorded anew; None makes one.
        options : EventOptions or dict, optional
            Of the event made.

        Returns
        -------
        Event

        Thread safety: atomic. Stream order: a submission.
        """
        cdef Status status
        cdef core.Stream* stream = self.on(NULL)
        if event is None:
            event = Event.create(device_of(&stream.context()), options, stream.session())
        elif not isinstance(event, Event):
            raise TypeError(f"event must be an Event, not {type(event).__name__}")
        elif options is not None:
            raise ValueError("options are of a new event: give event or options, not both")
        cdef Event recorded = event
        with nogil:
            status = stream.record(recorded._event[0])
        if not status.ok():
            raise_status(status, "record", f"{event} in {self}", (("the stream", self), ("the event", event)))
        return event

    def wait(self, event_or_stream):
        """Makes work submitted from now on wait for an event, or for what another stream has been given so far.

        Parameters
        ----------
        event_or_stream : Event, Stream or object with ``__cuda_stream__``

        Thread safety: atomic for an event; shared for a stream (a record there, then a wait here). Stream order: a
        submission.
        """
        cdef Status status
        cdef core.Stream* stream = self.on(NULL)
        cdef core.Stream* other
        cdef Stream other_stream
        cdef Event event
        awaited = event_or_stream
        if isinstance(event_or_stream, Event):
            event = event_or_stream
            with nogil:
                status = stream.wait(event._event[0])
        else:
            if not isinstance(event_or_stream, Stream) and not hasattr(event_or_stream, "__cuda_stream__"):
                raise ValueError(  # not TypeError: it is cuda.core's word for it
                    "event_or_stream must be an Event, a Stream or have __cuda_stream__, not "
                    f"{type(event_or_stream).__name__}"
                )
            awaited = other_stream = as_stream(event_or_stream)
            other = other_stream.on(&stream.context())
            with nogil:
                status = stream.wait(other[0])
        if not status.ok():
            raise_status(status, "wait", f"in {self} for {awaited}",
                         (("the waiting stream", self), (noun_of(awaited), awaited)))

    def exclusive(self):
        """Returns a context manager that keeps other threads' submissions to this stream out.

        Between enter and exit the calling thread's launches, copies, records and waits are contiguous in the stream;
        other threads that submit wait. Asking and synchronising are not submissions and never wait. Reentrant. Frees
        may still fall in between: they are ordered by the stream, not by the section.

        A section that an asyncio task began is that task's: if the task awaits inside, submissions of other tasks of
        its thread raise RuntimeError, since waiting would keep the task from ending it. So do not await inside. One
        that was begun outside of any task is all the thread's, as long as it is not ended; what a task began inside of
        it is that task's then.

        Whoever has the context manager may exit it, in another thread too, as an `ExitStack` that is handed over or a
        generator that is collected. If the thread or the task that entered it ends before, or the context manager is
        lost, the next one who submits or enters gets `SectionAbandonedError`, once; then the stream works again.

        Thread safety: atomic.

        Raises
        ------
        RuntimeError
            At enter, in another asyncio task of the thread whose task is inside.
        SectionAbandonedError
            At enter, as above.
        """
        return ExclusiveSection(self)

    def create_graph_builder(self):
        """Creates a builder of graphs, on the stream's device and of its priority.

        What the stream is given is captured by nobody: a builder has a stream of its own.

        Returns
        -------
        GraphBuilder

        Thread safety: atomic.
        """
        if self.is_closed:
            raise ClosedError(f"cannot create a graph builder beside {self}: it is closed")
        release_and_warn()
        cdef core.Stream* beside = self.on(NULL)
        return device_of(&beside.context()).graph_builder(beside.priority())

    def close(self):
        """Closes the stream; calls in progress complete, and submitted work runs on. Idempotent.

        Buffers that the stream was used with keep the handle until they are freed. Closing a default stream does
        nothing.

        Thread safety: atomic.
        """
        if self._stream != NULL:
            with nogil:
                self._stream.close()
        release_and_warn()

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        if self is other:
            return True
        return self.number() == (<Stream>other).number() and not self.is_closed and not other.is_closed

    def __hash__(self):
        return hash((Stream, self.number()))

    def __repr__(self):
        if self._stream == NULL or self._stream.is_default():
            return "<Stream: per-thread default>" if self.number() == 2 else "<Stream: legacy default>"
        return f"<Stream {self.number():#x}{' closed' if self.is_closed else ''}>"


refuse_to_make(Stream)


cdef object bool_of(bool value):
    return True if value else False


cdef Stream wrap(size_t handle, object owner):
    cdef Ref[core.Stream] made
    cdef Status status
    if handle <= 2:  # 0 is the driver's own name of the legacy default stream, and what CuPy and torch call it by
        return Stream._default(handle == 2)
    require_driver()
    with nogil:
        status = core.Stream.wrap(<core.CUstream>handle, made)
    if not status.ok():
        raise_status(status, "wrap", f"the stream handle {handle:#x}")
    if owner is not None:
        # Until the last buffer that was used in the stream has gone, and where the collector does not see it: it would
        # end the owner, and the stream with it, while a free has still to be put in its order.
        made.get().keep_owner(foreign_reference(owner))
    return Stream.adopt(made.detach())


cdef class StreamSource:
    cdef int launch_named(self, object config, object kernel, tuple values) except -1:
        """Captures a launch of which some arguments are a Parameter."""
        raise NotImplementedError

    cdef int check_host_function(self) except -1:
        """Raises if there can be none in it."""
        return 0


cdef Stream as_stream(object stream):
    """`stream` as a Stream: itself, that of a graph builder, or what its ``__cuda_stream__`` names."""
    if isinstance(stream, Stream):
        return stream
    if isinstance(stream, StreamSource):
        return (<StreamSource>stream)._stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is None:
        raise TypeError(f"stream must be a Stream or have __cuda_stream__, not {type(stream).__name__}")
    version_and_handle = protocol() if callable(protocol) else protocol
    if not isinstance(version_and_handle, tuple) or len(version_and_handle) != 2:
        raise TypeError(
            f"{type(stream).__name__}.__cuda_stream__ must return (version, handle), not {version_and_handle!r}"
        )
    version, handle = version_and_handle
    if handle_of(version) != 0:
        raise ValueError(f"{type(stream).__name__}.__cuda_stream__ is of version {version}; only 0 is known")
    return wrap(checked_handle(handle, f"the handle of {type(stream).__name__}.__cuda_stream__"), stream)


cdef class ExclusiveSection:
    """What :meth:`Stream.exclusive` returns."""

    cdef core.SectionHolder* _section    # constant
    cdef Stream _stream            # constant

    def __cinit__(self, Stream stream not None):
        self._stream = stream
        self._section = new core.SectionHolder(stream.on(NULL)[0])

    def __dealloc__(self):
        with nogil:
            del self._section

    def __enter__(self):
        cdef Status status
        cdef uint64_t task = running_task()
        with nogil:
            status = self._section.begin(task)
        check(status, "begin an exclusive section of", self._stream)
        return self._stream

    def __exit__(self, *exception):
        cdef bool ended
        with nogil:
            ended = self._section.end()
        if not ended:
            raise RuntimeError(
                f"cannot end the exclusive section of {self._stream}: it was not begun, or has ended; a section "
                "whose thread or task has ended is over when the next one was told so"
            )
        return False


# The numbers of asyncio tasks that entered a section, which the core knows them by: it keeps no task, because a task
# keeps what its exception's traceback refers to, perhaps the section that is to be let go of. The steps of this
# dictionaries are atomic, which is all that is asked of them; the numbers are given out by the core's counter.
NUMBERS = WeakKeyDictionary()
TASKS = WeakValueDictionary()


cdef uint64_t running_task() except? 0:
    """The number of the asyncio task that the calling thread runs; 0 if it runs none."""
    asyncio = imported("asyncio")  # who has not imported it has no tasks
    find_loop = getattr(asyncio, "_get_running_loop", None)  # without it another thread is importing asyncio just now
    loop = None if find_loop is None else find_loop()
    task = None if loop is None else asyncio.current_task(loop)
    if task is None:
        return 0
    number = NUMBERS.get(task)
    if number is None:  # nobody else asks for this task: it runs here
        NUMBERS[task] = number = core.next_task()
        TASKS[number] = task
        task.add_done_callback(end_sections)
    return number


def end_sections(task):
    """Called when a task has ended, in its thread: by its end, an exception or its cancellation."""
    cdef uint64_t number = NUMBERS[task]
    with nogil:
        core.give_up(number)


cdef uint64_t number_of_running() noexcept nogil:
    with gil:
        return running_task()


cdef bool has_ended(uint64_t number) noexcept nogil:
    with gil:
        task = TASKS.get(number)
        return task is None or task.done()


cdef core.Tasks tasks
tasks.running = number_of_running
tasks.has_ended = has_ended
core.learn_of_tasks_by(tasks)


LEGACY_DEFAULT_STREAM = Stream._default(False)
PER_THREAD_DEFAULT_STREAM = Stream._default(True)
