cimport core.memory.memory as core


cdef class MemoryResource:
    cdef core.MemoryResource* _resource   # constant; null for a resource written in Python
    cdef object __weakref__

    cdef core.MemoryResource* opened(self) except NULL
    cdef object allocate_for(self, object size, object stream, object reported)


# Behind MemoryResource.allocate; the module of buffers provides it when it is imported.
ctypedef object (*Allocate)(MemoryResource resource, object size, object stream, object reported)
cdef int provide_allocate(Allocate function) except -1

cdef size_t checked_size(object value, str name) except? <size_t>-1
cdef object allocate_from(object resource, object size, object stream, object reported)
