cimport core.code.kernel as core
from core.device.device cimport Context


# How to pack one parameter: constant once the kernel exists.
cdef struct Slot:
    unsigned size
    core.ParameterKind kind
    unsigned offset                # in the block of packed arguments, a multiple of 16


cdef class Kernel:
    cdef core.Kernel* _kernel      # constant
    cdef Slot* _slots              # constant
    cdef Py_ssize_t _slot_count    # constant; -1 when the layout is unknown
    cdef Py_ssize_t _block_size    # constant; bytes of packed arguments
    cdef str _name                 # constant
    cdef object _code              # constant; keeps the object code alive
    cdef object __weakref__

    @staticmethod
    cdef Kernel adopt(core.Kernel* made, str name, object code)
    cdef Context* context_on(self, object device) except NULL
