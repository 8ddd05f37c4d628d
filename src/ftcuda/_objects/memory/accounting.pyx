"""Resources that wrap another one, and count, limit or remember what is allocated through them."""

import atexit
import gc
import sys
import traceback
import weakref
from collections import namedtuple

from libcpp cimport bool

cimport core.memory.account as core
from core.driver.status cimport Status
from ftcuda._objects.memory.buffer cimport Buffer, checked_size
from ftcuda._objects.memory.resource cimport MemoryResource, allocate_from
from ftcuda._objects.support.deferred_release cimport give_back, release_done
from ftcuda._objects.support.raising cimport refuse_in_child

from ftcuda.errors import OutOfMemoryError

MemoryStatistics = namedtuple(
    "MemoryStatistics", ("current_bytes", "current_count", "peak_bytes", "peak_count", "total_bytes", "total_count"),
    module=__name__,
)
MemoryStatistics.__doc__ = "Bytes and numbers of allocations: live now, at most so far, and ever."

LiveAllocation = namedtuple("LiveAllocation", ("buffer", "size", "stack"), module=__name__)
LiveAllocation.__doc__ = "A buffer that was not closed yet, its bytes, and the lines that led to its allocation."


cdef double SECONDS_FOR_OTHERS = 1.0  # for calls of deallocate, which may wait for a lock that this thread holds

cdef enum: DEEPEST = 100  # wrappers ask each other, and end with each other, on the stack


cdef class WrappedMemoryResource(MemoryResource):
    """A resource that allocates from another one. What it does not do itself, it asks that one. Abstract."""

    cdef object _upstream    # constant
    cdef int _depth          # constant; how many wrap each other, of which this is the outermost

    def __init__(self, upstream):
        cdef int depth = 1
        if self._upstream is not None:
            raise TypeError("a memory resource is constant: make another one")
        if not callable(getattr(upstream, "allocate", None)):
            raise TypeError(f"upstream must be a memory resource, not {type(upstream).__name__}")
        if type(self) is WrappedMemoryResource:
            raise TypeError("WrappedMemoryResource is abstract: use one of its subclasses in ftcuda")
        if isinstance(upstream, WrappedMemoryResource):
            depth += (<WrappedMemoryResource>upstream)._depth
        if depth > DEEPEST:
            raise ValueError(f"upstream is wrapped {DEEPEST} times already")
        self._depth = depth
        self._upstream = upstream

    @property
    def upstream(self):
        """Where the memory comes from. Thread safety: atomic."""
        return self._upstream

    def allocate(self, size, *, stream=None):
        """Allocates a buffer from `upstream`; its ``memory_resource`` is this one. See `MemoryResource.allocate`.

        Thread safety: shared.
        """
        return self.allocate_for(size, stream, self)

    def close(self):
        """Closes `upstream`. Thread safety: atomic."""
        self._upstream.close()

    @property
    def is_closed(self):
        """Whether `upstream` is closed. Thread safety: atomic."""
        return self._upstream.is_closed

    @property
    def device(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.device

    @property
    def device_id(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.device_id

    @property
    def is_device_accessible(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_device_accessible

    @property
    def is_host_accessible(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_host_accessible

    @property
    def is_managed(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_managed

    @property
    def is_stream_ordered(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_stream_ordered

    @property
    def is_handle_owned(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_handle_owned

    @property
    def handle(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.handle

    @property
    def attributes(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.attributes

    def trim(self, bytes_to_keep=0):
        """Trims `upstream`. Thread safety: atomic."""
        self._upstream.trim(bytes_to_keep)

    def __repr__(self):
        return f"<{type(self).__name__} over {self._upstream!r}>"


cdef class AccountingMemoryResource(WrappedMemoryResource):
    """Counts what is allocated through it. Abstract."""

    cdef core.Account* _account      # constant

    def __dealloc__(self):
        if self._account != NULL:
            self._account.release()

    cdef core.Account* account(self) except NULL:
        if self._account == NULL:
            raise TypeError(f"{type(self).__name__} was not made: its __init__ must call super().__init__")
        refuse_in_child("use", self)
        return self._account

    @property
    def statistics(self):
        """The figures at one moment, as `MemoryStatistics`. A buffer counts until its free is submitted.

        Thread safety: atomic.
        """
        cdef core.Figures figures
        cdef core.Account* account = self.account()
        with nogil:
            figures = account.figures()
        return MemoryStatistics(
            figures.current_bytes, figures.current_count, figures.peak_bytes, figures.peak_count, figures.total_bytes,
            figures.total_count,
        )

    cdef object allocate_for(self, object size, object stream, object reported):
        cdef size_t wanted = checked_size(size, "size")
        cdef core.Account* account = self.account()
        cdef bool charged
        cdef Status status
        with nogil:
            charged = account.charge(wanted)
        if not charged and give_back(SECONDS_FOR_OTHERS):
            with nogil:
                charged = account.charge(wanted)
        if not charged:
            gc.collect()  # what nobody refers to any more may hold the memory
            release_done()
            give_back(SECONDS_FOR_OTHERS)
            with nogil:
                charged = account.charge(wanted)
        if not charged:
            raise OutOfMemoryError(
                f"cannot allocate {wanted} bytes from {self}: {self.statistics.current_bytes} of the {account.limit()} "
                "that it allows are allocated", 2, "CUDA_ERROR_OUT_OF_MEMORY", "",
            )
        try:
            buffer = allocate_from(self._upstream, size, stream, reported)
        except BaseException:
            with nogil:
                account.cancel(wanted)
            raise
        with nogil:
            account.confirm(wanted)
            status = (<Buffer>buffer)._buffer.charge_to(account[0])
            if not status.ok():
                account.credit(wanted)  # already closed, by whoever saw it in a hook
        return buffer


cdef class StatisticsMemoryResource(AccountingMemoryResource):
    """Counts bytes and buffers that are allocated through it.

    Parameters
    ----------
    upstream : MemoryResource
        Any resource: ftcuda's, one written in Python, another wrapper.
    """

    def __init__(self, upstream):
        super().__init__(upstream)
        self._account = new core.Account(<size_t>-1)


cdef class LimitingMemoryResource(AccountingMemoryResource):
    """Refuses allocations that would bring the bytes allocated through it above a limit.

    The limit is exact under threads.

    Parameters
    ----------
    upstream : MemoryResource
    allocation_limit : int
        Bytes.
    """

    def __init__(self, upstream, allocation_limit):
        super().__init__(upstream)
        self._account = new core.Account(checked_size(allocation_limit, "allocation_limit"))

    @property
    def allocation_limit(self):
        """Bytes. Thread safety: atomic."""
        return self.account().limit()


cdef class TrackingMemoryResource(WrappedMemoryResource):
    """Remembers which buffers live and where they were allocated.

    Parameters
    ----------
    upstream : MemoryResource
    capture_stacks : bool
        Keep the lines that led to each allocation, which costs some microseconds each.
    report_at_exit : bool
        Write what was not closed to the standard error stream when the interpreter ends.
    """

    # Constant; by a record's id. Its own steps are atomic, which is all that is asked of it.
    cdef dict _live
    cdef bint _capture_stacks    # constant

    def __init__(self, upstream, *, capture_stacks=True, report_at_exit=False):
        super().__init__(upstream)
        self._live = {}
        self._capture_stacks = capture_stacks
        if report_at_exit:
            atexit.register(self._report)

    cdef object allocate_for(self, object size, object stream, object reported):
        buffer = allocate_from(self._upstream, size, stream, reported)
        live = self._live
        record = [None, buffer.size, traceback.extract_stack() if self._capture_stacks else None]
        key = id(record)

        def forget(_):
            live.pop(key, None)

        record[0] = weakref.ref(buffer, forget)
        live[key] = record
        return buffer

    @property
    def live_allocations(self):
        """The buffers that are neither closed nor collected, oldest first, as `LiveAllocation`. Thread safety: shared.
        """
        found = []
        for key, (reference, size, stack) in list(self._live.items()):
            buffer = reference()
            if buffer is None or buffer.is_closed:
                self._live.pop(key, None)
            else:
                found.append(LiveAllocation(buffer, size, stack))
        return found

    def report(self):
        """Returns a text on what lives: bytes, and the lines of each allocation. Thread safety: shared."""
        live = self.live_allocations
        parts = [f"{len(live)} buffers of {sum(each.size for each in live)} bytes from {self} are not closed"]
        for each in live:
            parts.append(f"{each.buffer}" + (", allocated at" if each.stack else ""))
            if each.stack:
                parts.append("".join(traceback.format_list(each.stack)).rstrip())
        return "\n".join(parts)

    def _report(self):
        if self.live_allocations:
            print(self.report(), file=sys.stderr)
