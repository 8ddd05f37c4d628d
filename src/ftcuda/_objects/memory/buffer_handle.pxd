from libc.stdint cimport uint64_t
from libcpp.atomic cimport atomic

cimport core.memory.buffer as core
cimport core.stream.stream as streams
from core.memory.copy cimport Location

# Whose memory it is: who says.
cdef enum Where:
    as_resource    # its resource does
    on_host        # the driver did, as of all that follow: memory that it does not know
    on_device
    pinned
    managed


cdef class BufferHandle:
    cdef core.Buffer* _buffer             # constant; freed by the last lease after close()
    cdef object _memory_resource          # constant
    cdef atomic[bint] _shows_holder       # the collector sees the holder; changed only attached, where it cannot run
    cdef Where _where                     # constant
    cdef bint _is_managed                 # constant; the driver said so, of memory whose resource says the rest
    cdef int _ordinal                     # constant; of the device whose memory it is, -1 for the host's
    cdef Py_ssize_t _shape                # constant; what exported views point to
    cdef object __weakref__

    cdef int end(self, streams.Stream* stream, object named, bint collected) except -1
    cdef object where(self)
    cdef object is_reached_by_devices(self)
    cdef object is_reached_by_host(self)
    cdef bint migrates(self) except -1


cdef inline void adopt(BufferHandle buffer, core.Buffer* made, object memory_resource) noexcept:
    """Fills an object that nobody else has yet."""
    buffer._buffer = made
    buffer._memory_resource = memory_resource
    buffer._shows_holder.store(True)
    buffer._where = Where.as_resource
    buffer._shape = made.size()


cdef Where[4] WHERE_OF                    # constant; by Location
cdef int ordinal_of_memory(uint64_t pointer, Location& location) except -2
cdef BufferHandle pinned_memory(size_t size, streams.Stream* stream)
