from libcpp cimport bool


cdef extern from "_core/sync/limit.hpp" namespace "ftcuda::core" nogil:
    cppclass Limit:
        double seconds
        bool (*is_interrupted)() noexcept nogil
