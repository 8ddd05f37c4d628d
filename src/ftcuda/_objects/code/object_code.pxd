from ftcuda._objects.code.code_handle cimport CodeHandle


cdef class ObjectCode(CodeHandle):
    cdef object _code              # constant; the image, or the path of its file
    cdef object _code_type         # constant
    cdef str _name                 # constant
    cdef dict _symbol_mapping      # constant after construction
    cdef object __weakref__


cdef ObjectCode make_object_code(bytes image, bytes signatures, object path, object code_type, str name,
                                 dict symbol_mapping)
