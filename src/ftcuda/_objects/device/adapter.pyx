"""The driver's entry points for other extensions."""

from cpython.pycapsule cimport PyCapsule_New

from core.driver.loader cimport find_entry, loaded, loaded_driver
from core.driver.status cimport error_name, error_text
from ftcuda._objects.support.driver cimport require_driver
from ftcuda.adapter cimport FTCUDA_DRIVER_CAPSULE, ftcuda_driver_v1

from ftcuda._objects.support.installed import installed


cdef int load() except -1:
    return require_driver()


cdef const char* status_name(int status) noexcept nogil:
    return error_name(status)


cdef const char* status_text(int status) noexcept nogil:
    return error_text(status)


cdef int driver_version() noexcept nogil:
    return loaded_driver().version if loaded() else 0


cdef ftcuda_driver_v1 table    # filled while this module is imported, constant afterwards
table.version = 1
table.size = sizeof(ftcuda_driver_v1)
table.load = load
table.find = find_entry
table.status_name = status_name
table.status_text = status_text
table.driver_version = driver_version

driver_v1 = PyCapsule_New(&table, FTCUDA_DRIVER_CAPSULE, NULL)


def get_include():
    """Returns the folder of ``ftcuda/driver.h``, for the compiler's ``-I``.

    Through that header C, C++ and Cython code (``from ftcuda.adapter cimport ...``) reaches the driver that ftcuda has
    loaded without linking it.

    Thread safety: atomic.
    """
    return str(installed("include/ftcuda/driver.h").parents[1])
