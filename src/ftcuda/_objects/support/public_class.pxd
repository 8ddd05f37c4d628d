from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef object (*newfunc)(PyTypeObject* type, PyObject* arguments, PyObject* keywords)
    ctypedef struct PyTypeObject:
        newfunc tp_new

cdef extern from "_objects/support/only_made.hpp" namespace "ftcuda::objects":
    void refuse_to_make_base(object type)

# Called once, when the public class is known.
ctypedef int (*Completion)(const PublicClass* above) except -1


# One for each handle, as long as the process; constant once ftcuda is imported.
cdef struct PublicClass:
    PyTypeObject* handle
    PyTypeObject* type        # the public class; the handle itself until that is known
    newfunc make              # its own way to make objects, whatever it lets others do
    Completion complete       # may be null
    PublicClass* next


cdef const PublicClass* register(object handle, Completion complete) except NULL
cpdef int stand_above(object public, object handle) except -1


cdef inline const PublicClass* declare_handle(object handle, Completion complete=NULL) except NULL:
    """Says that a class is a handle: from now on nobody makes it itself, nor derives from it in Python. Once for each
    handle, by its own module, which has one at most.
    """
    refuse_to_make_base(handle)
    return register(handle, complete)


cdef inline object unmade(const PublicClass* above):
    """An object of the public class, to be filled, which nobody else has yet."""
    return above.make(above.type, <PyObject*>(), NULL)
