"""Leases on buffers for what others read of them."""

cimport core.memory.buffer as buffers
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.support.deferred_release cimport release_holder

from ftcuda.errors import ClosedError


cdef class Lease:
    """Keeps an object, and its buffer from being freed."""

    @staticmethod
    cdef Lease on(BufferHandle buffer, object held):
        """A lease on `buffer`, or for None only on what is held."""
        cdef Lease lease = Lease.__new__(Lease)
        cdef bint entered
        lease._held = held
        if buffer is not None:
            with nogil:
                entered = buffer._buffer.enter()
            if not entered:
                raise ClosedError(f"cannot export {buffer}: it is closed")
            lease._entered = buffer._buffer
            lease._entered.retain()
        return lease

    def __dealloc__(self):
        # The collector may have cleared what is held, and the buffer's own object, before: nothing of Python's is
        # needed here.
        cdef buffers.ReleasedHolder released
        if self._entered != NULL:
            with nogil:
                self._entered.leave(released)
            release_holder(&self._entered.context(), released.holder, released.event, False)
            self._entered.release_attached()
