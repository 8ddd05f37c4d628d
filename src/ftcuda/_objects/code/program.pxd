cimport core.code.module as core


cdef class ObjectCode:
    cdef core.Module* _module      # constant; unloaded once nothing runs after the last reference
    cdef object _code              # constant; the image, or the path of its file
    cdef object _code_type         # constant
    cdef str _name                 # constant
    cdef dict _symbol_mapping      # constant after construction
    cdef object __weakref__
