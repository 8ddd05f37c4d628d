cimport core.memory.buffer as buffers
from cpython.object cimport PyObject
from libcpp.atomic cimport atomic

from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.stream.stream cimport Stream
from ftcuda._objects.support.deferred_release cimport PendingCall

ctypedef PyObject* Borrowed


cdef class Deallocation(PendingCall):
    """Memory of a resource that is written in Python."""

    cdef object _resource           # constant, as the next three
    cdef size_t _address
    cdef size_t _size
    cdef Stream _stream
    cdef buffers.Buffer* _held      # constant, with a count: the buffer, whose accounts are told of the free
    # The stream of the first close(stream), with a reference of its own; null until then. Set by who is inside the
    # buffer, and read when nobody is any more.
    cdef atomic[Borrowed] _named

    @staticmethod
    cdef Deallocation of(object resource, size_t address, size_t size, Stream stream)
    cdef void hold(self, buffers.Buffer* buffer) noexcept
    cdef int name(self, Stream stream) except -1
    cdef int call(self) except -1


cdef class Ownership:
    """Memory that an object keeps for as long as it lives."""

    cdef object owner               # constant
    cdef buffers.Buffer* _held      # constant, with a count
    cdef buffers.Buffer* _lent      # constant, with a count and a lease: that of the owner, if it is a buffer or a view

    @staticmethod
    cdef Ownership of(object owner, BufferHandle buffer)   # which may be None
    cdef void hold(self, buffers.Buffer* buffer) noexcept
