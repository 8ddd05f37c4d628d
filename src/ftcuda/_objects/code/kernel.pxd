cimport core.code.kernel as core
cimport core.code.module as modules
from core.device.device cimport Context
from ftcuda._objects.code.kernel_handle cimport KernelHandle


cdef class Kernel(KernelHandle):
    cdef str _name                 # constant
    cdef object _code              # constant; keeps the object code alive
    cdef object __weakref__

    @staticmethod
    cdef Kernel made_of(core.Kernel* made, str name, object code)
    @staticmethod
    cdef Kernel of_code(modules.Module* module, object code, str name, str symbol)
    cdef Context* context_on(self, object device) except NULL
