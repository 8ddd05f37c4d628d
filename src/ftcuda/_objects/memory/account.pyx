"""Resources that count, and limit, what is allocated through them."""

import gc
from collections import namedtuple

from libcpp cimport bool

cimport core.memory.account as core
from core.sync.reason cimport Status
from ftcuda._objects.memory.buffer cimport Buffer
from ftcuda._objects.memory.resource cimport allocate_from
from ftcuda._objects.memory.size cimport checked_size
from ftcuda._objects.memory.wrapped cimport WrappedMemoryResource
from ftcuda._objects.support.deferred_release cimport give_back, release_done
from ftcuda._objects.support.raising cimport refuse_to_wait

from ftcuda.errors import OutOfMemoryError

MemoryStatistics = namedtuple(
    "MemoryStatistics", ("current_bytes", "current_count", "peak_bytes", "peak_count", "total_bytes", "total_count"),
    module=__name__,
)
MemoryStatistics.__doc__ = "Bytes and numbers of allocations: live now, at most so far, and ever."


cdef double SECONDS_FOR_OTHERS = 1.0  # for calls of deallocate, which may wait for a lock that this thread holds


cdef class AccountingMemoryResource(WrappedMemoryResource):
    """Counts what is allocated through it. Abstract."""

    cdef core.Account* _account      # constant

    def __dealloc__(self):
        if self._account != NULL:
            self._account.release()

    cdef core.Account* account(self) except NULL:
        if self._account == NULL:
            raise TypeError(f"{type(self).__name__} was not made: its __init__ must call super().__init__")
        refuse_to_wait("use", self)
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
