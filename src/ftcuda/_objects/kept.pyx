"""Objects that live until the work submitted with them is done, and the calls of foreign code that no caller waits for."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

cimport core.kept as core
from core.stream cimport Stream

cdef extern from "Python.h":
    void PyErr_WriteUnraisable(object where)
    void PyErr_SetRaisedException(PyObject* error)  # takes the reference over


cdef class Loan:
    def __cinit__(self, resource, address, size, stream):
        self._resource = resource
        self._address = address
        self._size = size
        self._stream = stream

    cdef int give_back(self) except -1:
        run_contained(self._resource.deallocate, self._address, self._size, stream=self._stream)
        return 0


def run_contained(function, *arguments, **keywords):
    """Calls `function`; an exception goes to `sys.unraisablehook`, because the caller has nothing to do with it."""
    try:
        function(*arguments, **keywords)
    except Exception as error:
        Py_INCREF(error)
        PyErr_SetRaisedException(<PyObject*>error)
        PyErr_WriteUnraisable(function)


cdef int keep(Stream* stream, object wanted) except -1:
    """Keeps `wanted` until what was submitted to `stream` so far is done."""
    Py_INCREF(wanted)  # the core's; release_done() takes it over
    with nogil:
        core.keep(stream[0], <void*>wanted)
    return 0


cdef int release_done() except -1:
    """Lets go of objects whose work is done, and gives memory back to resources that are written in Python."""
    cdef void* found
    while core.any():
        with nogil:
            found = core.take_done()
        if found == NULL:
            return 0
        done = <object>found
        Py_DECREF(done)
        if type(done) is Loan:
            (<Loan>done).give_back()
    return 0
