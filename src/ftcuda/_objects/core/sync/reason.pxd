from core.driver.status cimport Entry


cdef extern from "_core/sync/reason.hpp" namespace "ftcuda::core" nogil:
    enum class Reason:
        none
        driver
        absent
        not_supported
        closed
        poisoned
        forked
        wrong_device
        not_found
        capturing
        timed_out
        interrupted
        abandoned
        other_task
        not_building
        begun
        unended
        body_unended
        unjoined
        has_parameters
        other_attributes
        only_instance
        gone
        other_graph
        stays
        updated
        too_small
        unplaced
        builders
        spoilt
        other_capture

    cppclass Status:
        Status()
        Status(Reason)
        bint ok()
        void ignore()
        Reason reason()
        Entry entry()
        int code()
