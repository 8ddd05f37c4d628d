"""What a row has, for those who submit rows and read answers."""

cimport cython
from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

import numpy as np

cdef type ndarray = np.ndarray


@cython.no_gc  # names, types and lengths refer to nothing that refers back
cdef class RowLayout:
    """The arrays of a row, of requests or of answers."""

    @staticmethod
    cdef RowLayout of(tuple arrays):
        cdef RowLayout made = RowLayout.__new__(RowLayout)
        cdef vector[Py_ssize_t] shape
        made.arrays = arrays
        for each in arrays:
            made.sizes.push_back(each.nbytes)
            made._dtypes.push_back(<PyObject*>each.dtype)
            made._names.push_back(<PyObject*>each.name)
            shape = each.shape
            made._shapes.push_back(shape)
        return made

    cdef bint take(self, object given, bint many, Py_buffer* view) except -1:
        """Whether numpy's array is as rows_of() would make it. Then its memory is in `view`, until that is released."""
        if type(given) is not ndarray or self._dtypes.size() != 1:
            return False
        dtype = given.dtype
        if <PyObject*>dtype != self._dtypes[0]:  # another one that is equal is rare
            return False
        PyObject_GetBuffer(given, view, PyBUF_STRIDES)
        cdef vector[Py_ssize_t]* shape = &self._shapes[0]
        cdef size_t index
        cdef bint fits = <size_t>view.ndim == shape.size() + many and PyBuffer_IsContiguous(view, b"C")
        if fits:
            for index in range(shape.size()):
                fits = fits and view.shape[index + many] == shape[0][index]
        if not fits:
            PyBuffer_Release(view)
        return fits

    cdef object answer(self, size_t index, Py_ssize_t rows, bint many, object memory):
        """numpy's array of one row, or of as many."""
        cdef vector[Py_ssize_t]* lengths = &self._shapes[index]
        cdef size_t dimension
        shape = PyTuple_New(lengths.size() + many)
        if many:
            put(shape, 0, rows)
        for dimension in range(lengths.size()):
            put(shape, dimension + many, lengths[0][dimension])
        return ndarray(shape, <object>self._dtypes[index], memory)

    cdef object name(self, size_t index):
        return <object>self._names[index]


cdef int put(object shape, Py_ssize_t index, Py_ssize_t length) except -1:
    cdef object made = length
    Py_INCREF(made)  # which the next call takes over
    PyTuple_SET_ITEM(shape, index, made)
    return 0
