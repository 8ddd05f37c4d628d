from cpython.object cimport PyObject
from libcpp.vector cimport vector

from core.serving.rows cimport RowSizes


cdef class RowLayout:
    # Constant. What the tuple says, and borrowed references to what it has: threads read these without counting one,
    # since a count that all of them write costs more than the rest of a request.
    cdef tuple arrays
    cdef RowSizes sizes
    cdef vector[PyObject*] _dtypes, _names
    cdef vector[vector[Py_ssize_t]] _shapes

    @staticmethod
    cdef RowLayout of(tuple arrays)
    cdef bint take(self, object given, bint many, Py_buffer* view) except -1
    cdef object answer(self, size_t index, Py_ssize_t rows, bint many, object memory)
    cdef object name(self, size_t index)
