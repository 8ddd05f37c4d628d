cimport core.memory.buffer as buffers
from core.launch.bound_launch cimport BoundArgument
from ftcuda._objects.arrays.view_handle cimport ViewHandle
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.stream.stream cimport Stream

cdef int pack(KernelHandle kernel, Py_ssize_t index, object value, char* block, buffers.Buffer** buffer) except -1
cdef ViewHandle pack_array(KernelHandle kernel, Py_ssize_t index, object value, Stream stream, char* block,
                           buffers.Buffer** buffer)
cdef list closable(tuple values)
cdef int wrong_count(KernelHandle kernel, Py_ssize_t given) except -1
cdef int pack_bound(KernelHandle kernel, Py_ssize_t index, object value, char* block, BoundArgument* argument) except -1
cdef object unpack(KernelHandle kernel, Py_ssize_t index, object value, const char* block)
