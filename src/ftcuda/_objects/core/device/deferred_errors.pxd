from libcpp cimport bool

from core.sync.reason cimport Status


cdef extern from "_core/device/deferred_errors.hpp" namespace "ftcuda::core::deferred_errors" nogil:
    cppclass DeferredError:
        Status status
        const char* verb
        const char* object

    bool any_deferred_error "ftcuda::core::deferred_errors::any"()
    bool pop(DeferredError& error)
    size_t pop_dropped()
