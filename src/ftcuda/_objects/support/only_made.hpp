// Types whose objects only ftcuda makes: not by calling the type, not by its `__new__`, and not through a subclass,
// which would give objects with nothing behind them.
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

// From now on; the type's own module makes objects by a function that this leaves alone. Before other threads see the
// type.
inline void refuse_to_make(PyObject* type) {
    PyTypeObject* const refusing = reinterpret_cast<PyTypeObject*>(type);
    refusing->tp_new = refuse_new;
    refusing->tp_vectorcall = nullptr;  // which Cython's types have, and which would be called instead
}

namespace {  // each module has its own

newfunc make_derived = nullptr;  // constant once the module is imported

inline PyObject* refuse_new_base(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    if (!(type->tp_flags & Py_TPFLAGS_BASETYPE)) return refuse_new(type, arguments, keywords);
    return make_derived(type, arguments, keywords);
}

// For a class below public ones, of which a module has one at most: nobody makes it itself, nor derives from it in
// Python. The classes derived in Cython are made as before.
inline void refuse_to_make_base(PyObject* type) {
    PyTypeObject* const base = reinterpret_cast<PyTypeObject*>(type);
    base->tp_flags &= ~Py_TPFLAGS_BASETYPE;
    make_derived = base->tp_new;
    base->tp_new = refuse_new_base;
    base->tp_vectorcall = nullptr;
}

}  // namespace

}  // namespace ftcuda::objects
