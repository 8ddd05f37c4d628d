from libcpp cimport bool

from core.stream cimport Stream


cdef extern from "_core/kept.hpp" namespace "ftcuda::core::kept" nogil:
    void keep(Stream& stream, void* object) except +
    bool any()
    void* take_done() except +

    cppclass Guest:
        Guest(void* object)
