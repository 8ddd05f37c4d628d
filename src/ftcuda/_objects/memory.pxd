cimport core.memory as core


cdef class MemoryResource:
    cdef core.MemoryResource* _resource   # constant; null for a resource written in Python
    cdef object __weakref__

    cdef core.MemoryResource* opened(self) except NULL
