from libcpp cimport bool

from core.driver.status cimport Status


cdef extern from "_core/device/reclaim.hpp" namespace "ftcuda::core::reclaim" nogil:
    cppclass Notice:
        Status status
        const char* verb
        const char* object

    bool has_mail()
    bool take(Notice& notice)
    size_t take_dropped()
