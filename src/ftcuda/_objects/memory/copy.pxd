cimport core.stream.stream as streams
from ftcuda._objects.memory.buffer_handle cimport BufferHandle

cdef int copy_buffer(BufferHandle destination, BufferHandle source, object stream) except -1
cdef int keep_foreign(streams.Stream* stream, BufferHandle buffer) except -1
