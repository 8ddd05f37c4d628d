// Functions and methods that many threads call at once, with any number of arguments: called without a tuple or a dict,
// and without a write to a reference count of their own.
#pragma once

#include "immortal.hpp"

namespace ftcuda::objects {

using FastCall = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names);

// `definition` is read for as long as the process runs.
inline PyObject* make_fast_function(PyMethodDef* definition, PyObject* module) {
    PyObject* const function = PyCFunction_NewEx(definition, nullptr, module);
    if (function != nullptr) make_immortal(function);  // as long as its module
    return function;
}

// Before other threads see the type.
inline int add_fast_method(PyObject* type, PyMethodDef* definition) {
    PyTypeObject* const owner = reinterpret_cast<PyTypeObject*>(type);
    PyObject* const method = PyDescr_NewMethod(owner, definition);
    if (method == nullptr) return -1;
    make_immortal(method);  // as long as its type
    if (PyDict_SetItemString(owner->tp_dict, definition->ml_name, method) != 0) return -1;
    PyType_Modified(owner);
    return 0;
}

inline PyMethodDef fast_definition(const char* name, FastCall call, const char* doc) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL | METH_KEYWORDS,
            doc};
}

}  // namespace ftcuda::objects
