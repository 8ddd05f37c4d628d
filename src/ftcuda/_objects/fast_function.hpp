// Module functions that many threads call at once, with any number of arguments: called without a tuple, and without a write
// to a reference count of their own.
#pragma once

#include <Python.h>

namespace ftcuda::objects {

using FastCall = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names);

// `definition` is read for as long as the process runs. The caller has the only reference so far.
inline PyObject* make_fast_function(PyMethodDef* definition, PyObject* module) {
    PyObject* const function = PyCFunction_NewEx(definition, nullptr, module);
#ifdef Py_GIL_DISABLED
#if PY_VERSION_HEX >= 0x030e0000
    if (function != nullptr) PyUnstable_Object_EnableDeferredRefcount(function);
#else
    // There is no public call in 3.13. A function of a module lives as long as the process; the collector need not see it.
    if (function != nullptr) {
        if (PyObject_GC_IsTracked(function)) PyObject_GC_UnTrack(function);
        Py_SET_REFCNT(function, static_cast<Py_ssize_t>(_Py_IMMORTAL_REFCNT_LOCAL) + 1);
    }
#endif
#endif
    return function;
}

inline PyMethodDef fast_definition(const char* name, FastCall call, const char* doc) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL | METH_KEYWORDS, doc};
}

}  // namespace ftcuda::objects
