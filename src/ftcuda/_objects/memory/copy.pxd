from ftcuda._objects.memory.buffer_handle cimport BufferHandle

cdef int copy_buffer(BufferHandle destination, BufferHandle source, object stream) except -1
