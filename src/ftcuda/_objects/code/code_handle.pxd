cimport core.code.module as core


cdef class CodeHandle:
    cdef core.Module* _module    # constant; unloaded once nothing runs after the last reference
