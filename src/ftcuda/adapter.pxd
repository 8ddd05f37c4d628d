"""The CUDA driver for Cython code that does not link it. See include/ftcuda/driver.h, and ftcuda.get_include()."""

cdef extern from "ftcuda/driver.h":
    ctypedef struct ftcuda_driver_v1:
        unsigned version
        unsigned size
        int (*load)() except -1
        int (*find)(const char* name, int version, void** function) noexcept nogil
        const char* (*status_name)(int status) noexcept nogil
        const char* (*status_text)(int status) noexcept nogil
        int (*driver_version)() noexcept nogil

    const char* FTCUDA_DRIVER_CAPSULE
    const ftcuda_driver_v1* ftcuda_import_driver() except NULL
