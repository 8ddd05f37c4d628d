// Objects whose reference counts no thread writes: what every thread touches in every call.
#pragma once

#include <Python.h>

namespace ftcuda::objects {

// Makes `object` live as long as the process. The caller has the only reference so far. On builds with the GIL, where counts
// are not shared between threads that run, and where the interpreter offers no way, it is left as it is.
inline void make_immortal(PyObject* object) {
#ifdef Py_GIL_DISABLED
#if PY_VERSION_HEX >= 0x030e0000
    PyUnstable_Object_EnableDeferredRefcount(object);
#else
    // There is no public call in 3.13. The collector need not see it.
    if (PyObject_IS_GC(object) && PyObject_GC_IsTracked(object)) PyObject_GC_UnTrack(object);
    Py_SET_REFCNT(object, static_cast<Py_ssize_t>(_Py_IMMORTAL_REFCNT_LOCAL) + 1);
#endif
#else
    static_cast<void>(object);
#endif
}

}  // namespace ftcuda::objects
