"""Requests of many threads, put together to batches for one model."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.math cimport INFINITY
from libcpp.vector cimport vector

cimport core.memory.buffer as buffers
cimport core.serving.batcher as core
from core.serving.device_engine cimport serve, slab_bytes
from core.serving.device_lane cimport DeviceLane
from core.serving.request cimport Request
from core.serving.rows cimport Rows, byte
from core.sync.limit cimport Limit
from core.sync.reason cimport Reason, Status
from core.sync.ref cimport Ref
from ftcuda._objects.memory.buffer_handle cimport BufferHandle, pinned_memory
from ftcuda._objects.serving.batch_future cimport BatchFuture
from ftcuda._objects.serving.lane cimport Lane
from ftcuda._objects.serving.row_layout cimport RowLayout
from ftcuda._objects.stream.stream cimport Stream
from ftcuda._objects.support.deferred_release cimport foreign_reference
from ftcuda._objects.support.raising cimport raise_status, refuse_to_wait, release_and_warn
from ftcuda._objects.support.waiting cimport limit_of

from collections.abc import Sequence
from numbers import Real

from ftcuda._objects.device.device import Device
from ftcuda._objects.serving.batcher_statistics import BatcherStatistics, Times
from ftcuda._objects.serving.signature import row_arrays, rows_of
from ftcuda._objects.serving.warm_up import made_lanes, progress_of, start
from ftcuda._objects.support.options import integer
from ftcuda.errors import QueueFullError

MOST_BYTES = 1 << 48  # of pinned memory

cdef enum:
    MOST_PRIORITIES = 16
    MOST_IN_FLIGHT = 64
    COUNTS = 14              # the numbers of BatcherStatistics before `queued`, in the core's order


@cython.no_gc_clear  # its calls and its futures read the layouts without a look whether they are there
cdef class Batcher:
    """Dynamic batching: puts requests of many threads and tasks together to batches for one model.

    A batch leaves when it is full, when its oldest request has waited for `max_delay`, or at once while fewer than
    `in_flight` batches are on the device: an idle device waits for nobody. It is padded with zeros up to the next of
    `batch_sizes`. One thread, which never enters the interpreter, launches batches and hands their answers out.

    Every size is computed once before the first request; that may take a while.

    Parameters
    ----------
    forward : callable
        ``forward(batch)`` submits the work for ``batch.size`` rows to ``batch.stream``; it reads ``batch.inputs`` and
        writes ``batch.outputs``. See :class:`Batch`. It is captured once for each size and each batch on its way, and
        what it captures must stay the same then.
    inputs, outputs : mapping
        What a row has: ``{name: (dtype, shape)}``.
    batch_sizes : sequence of int
        Sizes of batches, in ascending order. The last one is the most that a batch has.
    max_delay : float
        Seconds that a request waits for others at most while the device is busy.
    max_queued : int
        Rows that may wait, on each device; at least as many as the largest batch has.
    in_flight : int
        Batches on a device that keep it busy, 1 to 64.
    device : Device, int, sequence of these, or None
        Who computes. Requests go to the one of several with the fewest waiting rows.
    capture : bool
        False: `forward` is called for each batch, in threads of Python, with a stream; so it may use any library that
        submits to a stream, and may wait, but not for requests to the same batcher.
    priorities : int
        How many there are, 1 to 16; 0 is the most urgent one. After eight batches of more urgent ones a less urgent
        one leaves.
    time_limit : float, optional
        Seconds after which the requests of a batch fail with a TimeoutError. The batch goes on.
    progress : bool, optional
        Whether a bar shows the warm-up; None: if standard error is a terminal.

    Thread safety: atomic.

    Raises
    ------
    Exception
        Whatever `forward` raises in the warm-up.
    """

    def __cinit__(
        self, forward, *, inputs, outputs, batch_sizes=(1, 4, 16, 64, 256), max_delay=200e-6, max_queued=4096,
        in_flight=2, device=None, capture=True, priorities=1, time_limit=None, progress=None,
    ):
        cdef core.Policy policy
        cdef BufferHandle memory
        cdef Lane lane
        cdef vector[Ref[DeviceLane]] lanes
        if not callable(forward):
            raise TypeError(f"forward must be callable, not {type(forward).__name__}")
        refuse_to_wait("make", "a batcher")
        arrays = row_arrays(inputs, "inputs"), row_arrays(outputs, "outputs")
        sizes = checked_sizes(batch_sizes)
        for each in sizes:
            policy.sizes.push_back(each)
        policy.max_queued = self._most = within(max_queued, "max_queued", sizes[-1], 1 << 24)
        policy.in_flight = within(in_flight, "in_flight", 1, MOST_IN_FLIGHT)
        policy.priorities = self._priorities = within(priorities, "priorities", 1, MOST_PRIORITIES)
        policy.set_times(seconds(max_delay, "max_delay"), seconds(time_limit, "time_limit"))
        most = (max_queued // sizes[-1] + MOST_IN_FLIGHT) * priorities * sizes[-1]
        if most * sum(each.nbytes for each in (*arrays[0], *arrays[1])) >= MOST_BYTES:
            raise ValueError("the rows that may wait have more bytes than any host: max_queued and the arrays of a row")
        self._inputs, self._outputs = RowLayout.of(arrays[0]), RowLayout.of(arrays[1])
        cdef size_t bytes_of_slabs = slab_bytes(policy, self._inputs.sizes, self._outputs.sizes)
        several = isinstance(device, (tuple, list))
        self._devices = tuple(each if isinstance(each, Device) else Device(each)
                              for each in (device if several else (device,)))
        if not self._devices:
            raise ValueError("device must name one at least")
        for name, each in (("capture", capture), ("progress", progress)):
            if not isinstance(each, bool) and (each is not None or name == "capture"):
                raise TypeError(f"{name} must be True or False, not {type(each).__name__}")
        with progress_of(len(self._devices) * policy.lanes() * len(sizes), progress) as advance:
            warm = [made_lanes(forward, each, arrays, sizes, policy.lanes(), capture, advance)
                    for each in self._devices]
        for device, parts in zip(self._devices, warm):
            made = [Lane.of(each, self._inputs.sizes, self._outputs.sizes) for each in parts]
            lanes.clear()
            for lane in made:
                lanes.push_back(Ref[DeviceLane](lane._lane[0]))
            memory = pinned_memory(bytes_of_slabs, (<Stream>parts[0].stream)._stream)
            keeper = foreign_reference((parts, memory))
            self._batchers.push_back(serve(policy, self._inputs.sizes, self._outputs.sizes, lanes,
                                           Ref[buffers.Buffer](memory._buffer[0]), keeper))
            if not capture:
                for lane, each in zip(made, parts):
                    start(lane, forward, device, each.batches)

    def __dealloc__(self):
        cdef size_t index
        with nogil:
            for index in range(self._batchers.size()):
                self._batchers[index].get().close()

    def __repr__(self):
        names = [", ".join(array.name for array in each) for each in (self._inputs.arrays, self._outputs.arrays)]
        return f"<Batcher of {names[0]} to {names[1]}{' closed' if self.is_closed else ''}>"

    def __call__(self, given, *, priority=0, deadline=None, timeout=None):
        """Has one row computed, and waits for the answer.

        Parameters
        ----------
        given : array or mapping
            As for :meth:`submit`.
        priority, deadline
            As for :meth:`submit`.
        timeout : float, optional
            Seconds after which to give up: waiting for room, and for the answer. None waits for ever.

        Returns
        -------
        numpy.ndarray or dict[str, numpy.ndarray]
            As :meth:`BatchFuture.result`, which also says what is raised.

        Thread safety: atomic. Blocks detached from the interpreter.
        """
        return (<BatchFuture>self.give(given, False, priority, deadline, timeout)).result(timeout)

    def submit(self, given, *, priority=0, deadline=None, timeout=0):
        """Has one row computed.

        Parameters
        ----------
        given : array or mapping
            The row, of the input's dtype and shape; with several inputs a mapping with an array for each. It is read
            before this returns.
        priority : int
            0 is the most urgent one.
        deadline : float, optional
            Seconds after which it is not begun any more.
        timeout : float or None
            Seconds to wait for room where as many rows wait as may; None waits for ever.

        Returns
        -------
        BatchFuture

        Thread safety: atomic.

        Raises
        ------
        QueueFullError
            As many rows wait as may.
        ClosedError
            The batcher is closed, or is drained.
        """
        return self.give(given, False, priority, deadline, timeout)

    def submit_many(self, given, *, priority=0, deadline=None, timeout=0):
        """Has several rows computed, perhaps in several batches: one request, of which one answer comes.

        Parameters
        ----------
        given : array or mapping
            Arrays of ``(rows, *shape)``. No rows at all have an answer at once.
        priority, deadline, timeout
            As for :meth:`submit`.

        Returns
        -------
        BatchFuture

        Thread safety: atomic.

        Raises
        ------
        ValueError
            There are more rows than may wait.
        QueueFullError, ClosedError
            As :meth:`submit`.
        """
        return self.give(given, True, priority, deadline, timeout)

    cdef CoreBatcher* least_queued(self) noexcept nogil:
        """Of those whose devices have not failed: the rows of one that has are gone at once."""
        cdef CoreBatcher* found = self._batchers[0].get()
        cdef CoreBatcher* each
        cdef size_t index
        for index in range(1, self._batchers.size()):
            each = self._batchers[index].get()
            if each.is_lost() < found.is_lost() or (
                    each.is_lost() == found.is_lost() and each.queued() < found.queued()):
                found = each
        return found

    cdef object give(self, object given, bint many, object priority, object deadline, object timeout):
        cdef Limit limit = limit_of(timeout)
        cdef double within_seconds = seconds(deadline, "deadline")
        cdef size_t level = 0 if priority is 0 else within(priority, "priority", 0, self._priorities - 1)
        cdef vector[byte*] pointers
        cdef vector[Py_buffer] views
        cdef Py_buffer view
        cdef Status status
        cdef size_t count, index
        cdef CoreBatcher* batcher = self.least_queued()
        cdef BatchFuture future
        try:
            if self._inputs.take(given, many, &view):
                views.push_back(view)
                count = view.shape[0] if many else 1
            else:
                arrays, count = rows_of(self._inputs.arrays, given, many)
                for array in arrays:
                    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
                    views.push_back(view)
            if count > self._most:
                raise ValueError(f"{count} rows are more than the {self._most} that may wait: max_queued")
            future = BatchFuture.of(
                Request.make(count, self._outputs.sizes, within_seconds), batcher, self, <PyObject*>self._outputs, many)
            for index in range(views.size()):
                pointers.push_back(<byte*>views[index].buf)
            with nogil:
                status = batcher.submit(future._request[0], Rows(pointers), level, limit)
        finally:
            for index in range(views.size()):
                PyBuffer_Release(&views[index])
        if status.ok():
            return future
        if status.reason() == Reason.queue_full:
            raise QueueFullError(f"{batcher.queued()} of the {self._most} rows that may wait do; ask again later, or "
                                 "with a timeout")
        raise_status(status, "submit to", self, (("the batcher", self),))

    def drain(self, timeout=None):
        """Takes no requests any more, and waits until all that there are have ended.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to give up; None waits for ever. The batcher goes on, and takes no requests.

        Thread safety: atomic. Blocks detached from the interpreter; in the main thread Ctrl-C ends the wait.

        Raises
        ------
        TimeoutError
            There are still some.
        """
        cdef Limit limit = limit_of(timeout)
        cdef Status status
        cdef size_t index
        refuse_to_wait("drain", self)
        with nogil:
            for index in range(self._batchers.size()):
                self._batchers[index].get().close()
        for index in range(self._batchers.size()):
            with nogil:
                status = self._batchers[index].get().wait_for_rest(limit)
            if not status.ok():
                raise_status(status, "drain", self)
        release_and_warn()

    def close(self):
        """Takes no requests any more; those that have not left fail with a ClosedError. Idempotent.

        Batches on their way end as they do, and then what the batcher has is given back.

        Thread safety: atomic.
        """
        cdef size_t index
        refuse_to_wait("close", self)
        with nogil:
            for index in range(self._batchers.size()):
                self._batchers[index].get().abandon()

    @property
    def is_closed(self):
        """Whether requests are refused, by :meth:`close` or :meth:`drain`. Thread safety: atomic."""
        return self._batchers.size() == 0 or self._batchers[0].get().is_closed()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        """Drains it, or closes it after an exception."""
        if kind is None:
            self.drain()
        self.close()

    @property
    def devices(self):
        """Who computes. Thread safety: atomic."""
        return self._devices

    @property
    def queued(self):
        """Rows that wait. Thread safety: atomic."""
        cdef size_t index
        rows = 0
        for index in range(self._batchers.size()):
            rows += self._batchers[index].get().queued()
        return rows

    @property
    def statistics(self):
        """What it has done, on all devices; each number of a moment of its own.

        Returns
        -------
        BatcherStatistics

        Thread safety: atomic.
        """
        cdef CoreBatcher* each
        cdef size_t index
        counts = [0] * COUNTS
        waiting, total, on_device = [], [], []
        for index in range(self._batchers.size()):
            each = self._batchers[index].get()
            for which in range(COUNTS):
                counts[which] += each.statistics()[<core.Count><int>which]
            waiting.append(times_of(each.statistics().waiting))
            total.append(times_of(each.statistics().total))
            on_device.append(times_of(each.statistics().device))
        return BatcherStatistics(*counts, self.queued, sum_of(waiting), sum_of(total), sum_of(on_device))


cdef object times_of(const core.Histogram& histogram):
    cdef size_t bucket
    counts = []
    for bucket in range(core.buckets):
        counts.append(histogram.count(bucket))
    return Times(tuple(counts), histogram.sum() / 1e9)


def sum_of(times):
    """Of several devices."""
    return Times(tuple(map(sum, zip(*(each.counts for each in times)))), sum(each.seconds for each in times))


def checked_sizes(given):
    """Sizes of batches."""
    if not isinstance(given, Sequence):
        raise TypeError(f"batch_sizes must be a sequence of sizes, not {type(given).__name__}")
    sizes = tuple(integer(each, "a batch size") for each in given)
    if not sizes or sizes[0] < 1 or sizes[-1] > 1 << 20 or any(a >= b for a, b in zip(sizes, sizes[1:])):
        raise ValueError(f"batch_sizes must be ascending, from 1 to {1 << 20}, not {given!r}")
    return sizes


def within(given, name, least, most):
    """An integer of a range."""
    made = integer(given, name)
    if not least <= made <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {made}")
    return made


cdef double seconds(object given, str name) except? -1:
    cdef double made
    if given is None:
        return INFINITY
    if type(given) is not float and (isinstance(given, bool) or not isinstance(given, Real)):
        raise TypeError(f"{name} must be seconds, not {type(given).__name__}")
    made = given
    if not made >= 0:
        raise ValueError(f"{name} must be seconds from 0 up, not {given!r}")
    return made
