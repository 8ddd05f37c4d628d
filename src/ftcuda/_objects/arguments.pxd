from cpython.object cimport PyObject

cimport core.buffer as buffers
from ftcuda._objects.kernel cimport Kernel

cdef int pack(Kernel kernel, Py_ssize_t index, PyObject* argument, char* block, buffers.Buffer** buffer) except -1
cdef int wrong_count(Kernel kernel, Py_ssize_t given) except -1
