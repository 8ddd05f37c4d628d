cimport core.memory.buffer as core
from ftcuda._objects.memory.buffer_handle cimport BufferHandle


cdef class Buffer(BufferHandle):
    @staticmethod
    cdef Buffer made_of(core.Buffer* made, object memory_resource)


cpdef Buffer checked_buffer(object resource, object allocated, object size)
