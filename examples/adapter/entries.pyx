# cython: language_level=3, freethreading_compatible=True
"""A Cython extension that reaches the driver through ftcuda.

    cythonize -i --inplace entries.pyx    # with ftcuda.get_include() among the compiler's include folders
"""

from ftcuda.adapter cimport ftcuda_driver_v1, ftcuda_import_driver

cdef const ftcuda_driver_v1* driver = ftcuda_import_driver()

ctypedef int (*DeviceCount)(int* count) noexcept nogil


def device_count():
    """The number of devices, asked of the driver itself."""
    cdef DeviceCount count_devices
    cdef int count = 0
    cdef int status = driver.find("cuDeviceGetCount", 2000, <void**>&count_devices)
    if status == 0:
        with nogil:
            status = count_devices(&count)
    if status != 0:
        raise RuntimeError(f"{driver.status_name(status).decode()}: {driver.status_text(status).decode()}")
    return count


def status_of(str name, int version):
    """What the adapter says of a function: 0 if the driver has it, 801 if not."""
    cdef void* function
    return driver.find(name.encode(), version, &function), function != NULL


def versions():
    """Of the structure, and of the driver."""
    return driver.version, driver.driver_version()
