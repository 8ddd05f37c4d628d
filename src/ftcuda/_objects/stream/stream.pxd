cimport core.stream.stream as core
from core.device.device cimport Context


cdef class Stream:
    cdef core.Stream* _stream      # constant; null for the default streams of "whatever device is asked for"
    cdef core.CUstream _token      # constant; which default stream that is
    cdef object __weakref__

    cdef core.Stream* on(self, Context* context) except NULL
    @staticmethod
    cdef Stream adopt(core.Stream* made)


cdef Stream as_stream(object stream)
