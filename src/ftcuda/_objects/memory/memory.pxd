cimport core.memory.memory as core


cdef class MemoryResource:
    cdef core.MemoryResource* _resource   # constant; null for a resource written in Python
    cdef object __weakref__

    cdef core.MemoryResource* opened(self) except NULL
    cdef object allocate_for(self, object size, object stream, object reported)


cdef object allocate_from(object resource, object size, object stream, object reported)
