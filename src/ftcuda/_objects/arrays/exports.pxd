from ftcuda._objects.arrays.view_handle cimport ViewHandle
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.stream.stream cimport Stream

cdef object export_view(ViewHandle view, object stream, object max_version, object dl_device, object copy)
cdef dict interface_of(ViewHandle view)
cdef ViewHandle end_of_copy(object value, BufferHandle other, str name)
cdef int copy_views(ViewHandle target, ViewHandle source, Stream stream, object blocking) except -1
cdef int copy_bytes(ViewHandle target, ViewHandle source, size_t bytes, Stream stream, object blocking) except -1
