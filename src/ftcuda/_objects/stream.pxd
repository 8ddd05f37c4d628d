cimport core.stream as core
from core.device cimport Context


cdef class Stream:
    cdef core.Stream* _stream      # constant; null for the default streams of "whatever device is asked for"
    cdef core.CUstream _token      # constant; which default stream that is
    cdef object _owner             # constant; keeps a foreign stream alive
    cdef object __weakref__

    cdef core.Stream* on(self, Context* context) except NULL
    @staticmethod
    cdef Stream adopt(core.Stream* made, object owner)


cdef Stream as_stream(object stream)
