from ftcuda._objects.arrays.view_handle cimport ViewHandle
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.stream.stream cimport Stream

cdef Stream stream_of(object stream)
cdef Stream consumer_of(object value, object stream)
cdef bint is_ours(object value)
cdef object no_stream(object value)
cdef ViewHandle any_view(object value, Stream stream)
cdef bint is_masked(object value)
cdef ViewHandle view_of_argument(object value, Stream stream, int oldest=*)
cdef ViewHandle view_or_none(object value, Stream stream, int oldest=*)
cdef ViewHandle dlpack_view(object value, Stream stream)
cdef ViewHandle cuda_interface_view(object value, Stream stream, int oldest)
cdef ViewHandle host_interface_view(object value, int oldest)
cdef ViewHandle buffer_view(BufferHandle buffer, object shape, object strides, object itemsize, object dtype,
                            bint is_readonly)
cdef ViewHandle located(ViewHandle view)
