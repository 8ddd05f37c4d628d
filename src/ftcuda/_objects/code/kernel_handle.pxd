cimport core.code.kernel as core
from core.code.kernel cimport ArgumentSlot


cdef class KernelHandle:
    cdef core.Kernel* _kernel             # constant
    cdef const ArgumentSlot* _slots       # constant: how to pack each argument
    cdef Py_ssize_t _slot_count           # constant; -1 when the layout is unknown
    cdef Py_ssize_t _block_size           # constant; bytes of packed arguments

    cdef int adopt(self, core.Kernel* made) except -1
    cdef int require_layout(self) except -1
