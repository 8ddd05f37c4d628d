from core.stream cimport Stream

cdef int keep(Stream* stream, object wanted) except -1
cdef int release_done() except -1


cdef class Loan:
    """Memory of a resource that is written in Python, to be given back to it."""

    cdef object _resource     # constant, as all of these
    cdef object _address
    cdef object _size
    cdef object _stream

    cdef int give_back(self) except -1
