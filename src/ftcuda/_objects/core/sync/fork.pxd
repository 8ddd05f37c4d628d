cdef extern from "_core/sync/fork.hpp" namespace "ftcuda::core" nogil:
    void watch_forks()
    bint is_forked()
