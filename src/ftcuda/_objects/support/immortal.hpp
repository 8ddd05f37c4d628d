// Objects whose reference counts no thread writes: what every thread touches in every call.
#pragma once

#include <Python.h>

namespace ftcuda::objects {

// Makes `object` live as long as the process: at any time, while others use it, but only by the thread that made it,
// whose count is written without a lock. False for others. On builds with the GIL, where counts are not shared between
// threads that run, it is left as it is. A deferred count, which 3.14 offers, is not enough: it spares the
// interpreter's own stack, and references that extension modules count, such as those of each buffer to its resource,
// are counted as before.
inline bool make_immortal(PyObject* object) {
#ifndef Py_GIL_DISABLED
    static_cast<void>(object);
    return true;
#else
    // There is no public call before 3.15. Whoever is amid counting now sees the object without an owner afterwards,
    // counts it with the others' references, and returns.
    if (_Py_IsImmortal(object)) return true;
    if (!_Py_IsOwnedByCurrentThread(object)) return false;
    _Py_atomic_store_uint32_relaxed(&object->ob_ref_local, _Py_IMMORTAL_REFCNT_LOCAL);
    _Py_atomic_store_uintptr_relaxed(&object->ob_tid, _Py_UNOWNED_TID);
    return true;
#endif
}

}  // namespace ftcuda::objects
