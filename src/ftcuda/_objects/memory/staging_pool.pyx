"""Pinned memory on lease."""

import gc
from collections import namedtuple
from time import monotonic

from libc.math cimport INFINITY
from libcpp.atomic cimport atomic
from libcpp.memory cimport unique_ptr

cimport core.memory.buffer as buffers
cimport core.memory.resource as core
from core.sync.limit cimport Limit
from core.sync.reason cimport Reason, Status
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.memory.buffer cimport Buffer
from ftcuda._objects.memory.resource cimport MemoryResource, not_made
from ftcuda._objects.memory.size cimport checked_size
from ftcuda._objects.support.raising cimport raise_status, refuse_to_wait, release_and_warn
from ftcuda._objects.support.waiting cimport limit_of, pass_on

from ftcuda._objects.support.hooks import ALLOCATED, announce

cdef dict on_allocate = ALLOCATED
cdef double PATIENCE = 0.1  # seconds, after which garbage may be what has the memory; each further time more
cdef double LONGEST_PATIENCE = 1.0
cdef double LONGEST_REST = 10.0  # between collections
cdef atomic[double] next_collection  # on the clock of monotonic(): not before

StagingStatistics = namedtuple(
    "StagingStatistics", ("in_use_bytes", "in_use_count", "idle_bytes", "idle_count", "waiting"), module=__name__
)
StagingStatistics.__doc__ = (
    "Bytes and number of the leases, and of the pieces that were given back; how many threads wait for one."
)


cdef int collect_garbage() except -1:
    """Ends leases in cycles that nobody refers to any more, and those of threads that wait, which others dropped last:
    without the GIL CPython leaves those to their thread, or to a collection by any. It takes a tenth of the time,
    but for collections of over a second: where many wait, they would do nothing else."""
    cdef double begin = monotonic()
    cdef double due = next_collection.load()
    if begin < due or not next_collection.compare_exchange_strong(due, INFINITY):
        return 0  # lately, or by another thread just now
    try:
        gc.collect()
    finally:
        end = monotonic()
        next_collection.store(end + min(9 * (end - begin), LONGEST_REST))
    return 0


cdef class StagingPool(MemoryResource):
    """Pinned host memory for what goes to the device or comes from there, leased piece by piece, and bounded.

    A lease is a :class:`Buffer`. It ends when it is closed or dropped, by whichever thread, but its memory is given out
    again only when the work that was submitted with it is done; nobody waits for that but who finds no other piece.
    A numpy array of a lease keeps its memory.

    Sizes are rounded up, to multiples of 512 bytes as far as 4 KiB and by an eighth at most beyond. Memory is pinned
    when it is first needed, and stays so; where its place is needed for another size it is freed first, for which a
    driver may wait for the device.

    Parameters
    ----------
    device : Device or int or None
        Whose context the memory belongs to; None is the calling thread's current device. Every device reaches it.
    size : int
        Bytes that the pool has at most, leased and idle.

    Thread safety: atomic.
    """

    def __init__(self, device, size):
        cdef size_t most = checked_size(size, "size")
        if most == 0:
            raise ValueError("the size of a staging pool must be 1 at least")
        not_made(self)
        self._resource = core.MemoryResource.staging(as_device(device).context_of()[0], most).detach()

    @property
    def size(self):
        """Bytes that the pool has at most. Thread safety: atomic."""
        return self.opened().staging_store().most()

    cdef str room(self):
        return f"{self.statistics.in_use_bytes} of the {self.size} bytes that it has at most are on lease"

    def lease(self, size, *, timeout=None):
        """Takes a piece of memory, and waits until there is one.

        Who came first has the first piece that is large enough, so that a large lease waits no longer than small ones.

        Parameters
        ----------
        size : int
            Bytes. Zero is allowed and leases nothing.
        timeout : float, optional
            Seconds after which to give up; None waits for ever, 0 does not wait.

        Returns
        -------
        Buffer
            ``np.frombuffer(lease, dtype)`` is an array of it. `close()`, or the end of a `with`, ends the lease.

        Thread safety: atomic. Blocks detached from the interpreter; in the main thread Ctrl-C ends the wait.

        Raises
        ------
        TimeoutError
            Others had the memory for so long.
        ValueError
            The pool has less memory than that.
        ClosedError
            The pool is closed, perhaps by another thread during the wait.
        """
        cdef Status status
        cdef Ref[buffers.Buffer] made
        cdef unique_ptr[core.StagingTurn] turn
        cdef core.MemoryResource* pool = self.opened()
        cdef size_t wanted = checked_size(size, "size")
        cdef Limit limit = limit_of(timeout)
        if wanted > pool.staging_store().most():
            raise ValueError(f"cannot lease {wanted} bytes from {self}, which has {self.size}")
        cdef double seconds = limit.seconds
        cdef double until = PATIENCE  # since the turn began, as the limit of each call
        refuse_to_wait("lease memory from", self)
        release_and_warn()
        with nogil:
            turn.reset(new core.StagingTurn(pool.staging_store()[0]))
        while True:
            limit.seconds = min(seconds, until)
            with nogil:
                status = buffers.Buffer.lease(pool[0], wanted, turn.get()[0], limit, made)
            if status.reason() != Reason.timed_out or limit.seconds == seconds:
                break
            collect_garbage()
            until += min(until, LONGEST_PATIENCE)
        with nogil:
            turn.reset()
        if status.reason() == Reason.timed_out:
            raise TimeoutError(f"{wanted} bytes of {self} were not there in time: others have them on lease")
        if status.reason() == Reason.interrupted:
            pass_on()
        if not status.ok():
            raise_status(status, "lease", f"{wanted} bytes from {self}", (("the memory resource", self),))
        cdef Buffer buffer = Buffer.made_of(made.detach(), self)
        if on_allocate:
            announce(on_allocate, buffer.handle, wanted, self, None)
        return buffer

    @property
    def statistics(self):
        """What is leased, what was given back, and who waits.

        Memory that was given back counts as idle also while the work that used it goes on.

        Returns
        -------
        StagingStatistics
            ``(in_use_bytes, in_use_count, idle_bytes, idle_count, waiting)``, of one moment; bytes of the sizes rounded
            up.

        Thread safety: atomic.
        """
        cdef core.StagingFigures figures
        cdef core.MemoryResource* pool = self.opened()
        refuse_to_wait("count what is in", self)
        with nogil:
            figures = pool.staging_store().figures()
        return StagingStatistics(figures.in_use_bytes, figures.in_use_count, figures.idle_bytes, figures.idle_count,
                                 figures.waiting)
