"""Streams."""

from libcpp cimport bool

cimport core.stream as core
from core.device cimport Context
from core.lifetime cimport Ref
from core.status cimport Status
from ftcuda._objects.device cimport Device, device_of, require_driver
from ftcuda._objects.event cimport Event
from ftcuda._objects.raising cimport deliver_mail, raise_status, refuse_to_make

from ftcuda._objects.handles import checked_handle
from ftcuda._objects.options import StreamOptions, checked


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

    @staticmethod
    cdef Stream adopt(core.Stream* made, object owner):
        cdef Stream stream = Stream.__new__(Stream)
        stream._stream = made
        stream._owner = owner
        return stream

    @staticmethod
    def _create(Device device not None, obj=None, options=None):
        cdef Ref[core.Stream] made
        cdef Status status
        cdef int least = 0, greatest = 0, priority = 0
        if obj is not None:
            if options is not None:
                raise ValueError("a stream is wrapped as it is: give obj or options, not both")
            stream = as_stream(obj)
            if stream.device != device:
                raise ValueError(f"cannot wrap {stream}: it belongs to {stream.device}, not {device}")
            return stream
        options = checked(options, StreamOptions)
        cdef unsigned flags = core.CU_STREAM_NON_BLOCKING if options.nonblocking else core.CU_STREAM_DEFAULT
        cdef Context* context = device.context_of()
        if options.priority is not None:
            with nogil:
                status = context.priority_range(least, greatest)
            if not status.ok():
                raise_status(status, "create a stream on", device)
            if not greatest <= options.priority <= least:
                raise ValueError(f"priority must be from {greatest} (served first) to {least}, not {options.priority}")
            priority = options.priority
        with nogil:
            status = core.Stream.create(context[0], flags, priority, made)
        if not status.ok():
            raise_status(status, "create a stream on", device)
        return Stream.adopt(made.detach(), None)

    @staticmethod
    def from_handle(handle):
        """Wraps a stream that other code owns and keeps alive.

        Parameters
        ----------
        handle : int or CUstream
            Of a ``CUstream`` or ``cudaStream_t``; 1 and 2 are the default streams.

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
    def _default_of(Device device not None, bint per_thread):
        cdef Stream token = Stream._default(per_thread)
        cdef core.Stream* found = token.on(device.context_of())
        found.retain()
        return Stream.adopt(found, None)

    cdef core.Stream* on(self, Context* context) except NULL:
        """The core's stream; for a default stream that of `context`, or of the calling thread's device if null."""
        cdef core.Stream* found = NULL
        cdef Status status
        if self._stream != NULL:
            return self._stream
        if context == NULL:
            context = Device().context_of()
        with nogil:
            status = (<core.ContextStreams*>context).default_stream(self._token, found)
        if not status.ok():
            raise_status(status, "use", self)
        return found

    def __cuda_stream__(self):
        """Returns ``(0, handle)``, the protocol by which other libraries take the stream. Thread safety: atomic."""
        return 0, self.handle

    @property
    def handle(self):
        """The ``CUstream`` as an integer. Thread safety: atomic."""
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
        if not status.ok():
            raise_status(status, "query", self)
        return bool_of(done)

    def sync(self):
        """Waits for all submitted work.

        Thread safety: atomic. Blocks detached from the interpreter.

        Raises
        ------
        CUDAError
            Also for failures of earlier work.
        """
        cdef Status status
        cdef core.Stream* stream = self.on(NULL)
        with nogil:
            status = stream.synchronize()
        if not status.ok():
            raise_status(status, "synchronise", self)
        deliver_mail()

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
            event = Event._create(device_of(&stream.context()), options)
        elif not isinstance(event, Event):
            raise TypeError(f"event must be an Event, not {type(event).__name__}")
        elif options is not None:
            raise ValueError("options are of a new event: give event or options, not both")
        cdef Event recorded = event
        with nogil:
            status = stream.record(recorded._event[0])
        if not status.ok():
            raise_status(status, "record", f"{event} in {self}")
        return event

    def wait(self, event_or_stream):
        """Makes work submitted from now on wait for an event, or for what another stream has been given so far.

        Parameters
        ----------
        event_or_stream : Event, Stream or object with ``__cuda_stream__``

        Thread safety: atomic for an event; shared for a stream (a record there, then a wait here).
        Stream order: a submission.
        """
        cdef Status status
        cdef core.Stream* stream = self.on(NULL)
        cdef core.Stream* other
        cdef Stream other_stream
        cdef Event event
        if isinstance(event_or_stream, Event):
            event = event_or_stream
            with nogil:
                status = stream.wait(event._event[0])
        else:
            other_stream = as_stream(event_or_stream)
            other = other_stream.on(&stream.context())
            with nogil:
                status = stream.wait(other[0])
        if not status.ok():
            raise_status(status, "wait", f"in {self} for {event_or_stream}")

    def exclusive(self):
        """Returns a context manager that keeps other threads' submissions to this stream out.

        Between enter and exit the calling thread's launches, copies, records and waits are contiguous in the stream; other
        threads that submit wait. Asking and synchronising are not submissions and never wait. Reentrant. Frees may
        still fall in between: they are ordered by the stream, not by the section.

        Thread safety: atomic.
        """
        self.on(NULL)
        return ExclusiveSection(self)

    def close(self):
        """Closes the stream; calls in progress complete, and submitted work runs on. Idempotent.

        Buffers that the stream was used with keep the handle until they are freed. Closing a default stream does nothing.

        Thread safety: atomic.
        """
        if self._stream != NULL:
            with nogil:
                self._stream.close()
        deliver_mail()

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return self is other or self.handle == (<Stream>other).handle and not self.is_closed and not other.is_closed

    def __hash__(self):
        return hash((Stream, self.handle))

    def __repr__(self):
        if self._stream == NULL or self._stream.is_default():
            return "<Stream: per-thread default>" if self.handle == 2 else "<Stream: legacy default>"
        return f"<Stream {self.handle:#x}{' closed' if self.is_closed else ''}>"


refuse_to_make(Stream)


cdef object bool_of(bool value):
    return True if value else False


cdef Stream wrap(size_t handle, object owner):
    cdef Ref[core.Stream] made
    cdef Status status
    if handle == 0:
        raise ValueError("a stream handle of 0 does not say which default stream is meant: use 1 (legacy) or 2 (per thread)")
    if handle <= 2:
        return Stream._default(handle == 2)
    require_driver()
    with nogil:
        status = core.Stream.wrap(<core.CUstream>handle, made)
    if not status.ok():
        raise_status(status, "wrap", f"the stream handle {handle:#x}")
    return Stream.adopt(made.detach(), owner)


cdef Stream as_stream(object stream):
    """`stream` as a Stream: itself, or what its ``__cuda_stream__`` names."""
    if isinstance(stream, Stream):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is None:
        raise TypeError(f"stream must be a Stream or have __cuda_stream__, not {type(stream).__name__}")
    version_and_handle = protocol() if callable(protocol) else protocol
    if not isinstance(version_and_handle, tuple) or len(version_and_handle) != 2:
        raise TypeError(f"{type(stream).__name__}.__cuda_stream__ must return (version, handle), not {version_and_handle!r}")
    version, handle = version_and_handle
    if version != 0:
        raise ValueError(f"{type(stream).__name__}.__cuda_stream__ is of version {version}; only 0 is known")
    return wrap(int(handle), stream)


cdef class ExclusiveSection:
    """What :meth:`Stream.exclusive` returns. To be entered and left by the same thread."""

    cdef Stream _stream

    def __cinit__(self, Stream stream not None):
        self._stream = stream

    def __enter__(self):
        cdef Status status
        cdef core.Stream* stream = self._stream.on(NULL)
        with nogil:
            status = stream.begin_exclusive()
        if not status.ok():
            raise_status(status, "begin an exclusive section of", self._stream)
        return self._stream

    def __exit__(self, *exception):
        cdef bool ended
        cdef core.Stream* stream = self._stream.on(NULL)
        with nogil:
            ended = stream.end_exclusive()
        if not ended:
            raise RuntimeError(f"cannot end the exclusive section of {self._stream}: this thread did not begin it")
        return False


LEGACY_DEFAULT_STREAM = Stream._default(False)
PER_THREAD_DEFAULT_STREAM = Stream._default(True)
