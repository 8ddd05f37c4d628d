cimport core.code.kernel as core


# How to pack one parameter: constant once the kernel exists.
cdef struct Slot:
    unsigned size
    core.ParameterKind kind
    unsigned offset                # in the block of packed arguments, a multiple of 16


cdef class KernelHandle:
    cdef core.Kernel* _kernel      # constant
    cdef Slot* _slots              # constant
    cdef Py_ssize_t _slot_count    # constant; -1 when the layout is unknown
    cdef Py_ssize_t _block_size    # constant; bytes of packed arguments

    cdef int adopt(self, core.Kernel* made) except -1
    cdef int require_layout(self) except -1
