from libcpp cimport bool

from core.sync.reason cimport Status


cdef extern from "_core/device/mailbox.hpp" namespace "ftcuda::core::mailbox" nogil:
    cppclass Notice:
        Status status
        const char* verb
        const char* object

    bool has_mail()
    bool pop(Notice& notice)
    size_t pop_dropped()
