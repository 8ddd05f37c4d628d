// Types whose objects are handles of this process, which mean nothing in another one.
#pragma once

#include <Python.h>

namespace ftcuda::objects {

// The type's `_elsewhere` says what to do instead.
inline PyObject* refuse_reduce(PyObject* self, PyObject*) {
    if (PyObject* const advice = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "_elsewhere")) {
        PyErr_Format(PyExc_TypeError, "cannot pickle %R: it belongs to this process; %U", self, advice);
        Py_DECREF(advice);
    }
    return nullptr;
}

// From now on, and for subclasses that have no `__reduce__` of their own. Before other threads see the type. Cython
// gives each of its types a `__reduce__` that speaks of its own C fields, which this replaces.
inline int refuse_to_pickle(PyObject* type, PyObject* advice) {
    static PyMethodDef definition = {"__reduce__", refuse_reduce, METH_NOARGS,
                                     "Refuses: a handle means nothing in another process."};
    PyTypeObject* const refusing = reinterpret_cast<PyTypeObject*>(type);
    PyObject* const method = PyDescr_NewMethod(refusing, &definition);
    if (method == nullptr) return -1;
    PyObject* const names = PyType_GetDict(refusing);
    const int status =
        PyDict_SetItemString(names, "__reduce__", method) | PyDict_SetItemString(names, "_elsewhere", advice);
    Py_DECREF(names);
    Py_DECREF(method);
    PyType_Modified(refusing);
    return status;
}

}  // namespace ftcuda::objects
