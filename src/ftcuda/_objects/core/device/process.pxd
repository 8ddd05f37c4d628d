cdef extern from "_core/device/process.hpp" namespace "ftcuda::core::process" nogil:
    bint begin_exit(bint slowly)
