cdef extern from "_core/process.hpp" namespace "ftcuda::core::process" nogil:
    void watch_forks()
    bint begin_exit(bint slowly)
