cimport core.buffer as core


cdef class Buffer:
    cdef core.Buffer* _buffer             # constant; freed by the last lease after close()
    cdef object _memory_resource          # constant
    cdef object _owner                    # constant
    cdef Py_ssize_t _shape                # constant; what exported views point to
    cdef object __weakref__

    @staticmethod
    cdef Buffer adopt(core.Buffer* made, object memory_resource, object owner)
