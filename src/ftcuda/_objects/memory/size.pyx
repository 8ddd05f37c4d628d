"""Numbers of bytes."""

from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyNumber_Index

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1


cdef size_t checked_size(object value, str name) except? <size_t>-1:
    """`value` as a number of bytes."""
    # Without an assignment to `value`, which would count a reference to a number that many threads may share.
    cdef int overflow = 0
    if not PyLong_CheckExact(value):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        return checked_size(PyNumber_Index(value), name)
    cdef long long number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < 0:
        raise ValueError(f"{name} must be from 0 to 2**63 - 1, not {value}")
    return number
