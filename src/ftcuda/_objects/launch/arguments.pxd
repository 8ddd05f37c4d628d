cimport core.memory.buffer as buffers
from core.launch.arguments cimport Argument
from ftcuda._objects.arrays.view_handle cimport ViewHandle
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.stream.stream cimport Stream

cdef int pack(KernelHandle kernel, Py_ssize_t index, object value, char* block, buffers.Buffer** buffer) except -1
cdef ViewHandle pack_reference(KernelHandle kernel, Py_ssize_t index, object value, Stream stream, char* block,
                               Argument* argument)
cdef list closable(object named)
cdef object numbered(tuple values)
cdef int wrong_count(KernelHandle kernel, Py_ssize_t given) except -1
cdef int wrong_device(KernelHandle kernel, Py_ssize_t index, int device, int wanted) except -1
cdef object unpack(KernelHandle kernel, Py_ssize_t index, object value, const char* block)
