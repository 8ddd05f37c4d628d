// Types whose objects only ftcuda makes: not by calling the type, not by its `__new__`, and not through a subclass, which would give
// objects with nothing behind them.
#pragma once

#include <Python.h>

namespace ftcuda::objects {

// The type's `_made` says who makes them.
inline PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
    if (PyObject* const made = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "_made")) {
        PyErr_SetObject(PyExc_TypeError, made);
        Py_DECREF(made);
    }
    return nullptr;
}

// From now on; the type's own module makes objects by a function that this leaves alone. Before other threads see the type.
inline void refuse_to_make(PyObject* type) {
    PyTypeObject* const refusing = reinterpret_cast<PyTypeObject*>(type);
    refusing->tp_new = refuse_new;
    refusing->tp_vectorcall = nullptr;  // which Cython's types have, and which would be called instead
}

}  // namespace ftcuda::objects
