cdef extern from "_core/device/process.hpp" namespace "ftcuda::core::process" nogil:
    void watch_forks()
    bint begin_exit(bint slowly)
