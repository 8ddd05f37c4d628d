cimport core.memory.buffer as buffers
from ftcuda._objects.memory.buffer_handle cimport BufferHandle


cdef class Lease:
    cdef object _held               # constant; keeps foreign memory
    cdef buffers.Buffer* _entered   # constant, with a reference; null for foreign memory

    @staticmethod
    cdef Lease on(BufferHandle buffer, object held)
