from core.sync.reason cimport Status


cdef extern from "_core/sync/may_wait.hpp" namespace "ftcuda::core" nogil:
    Status may_wait()
