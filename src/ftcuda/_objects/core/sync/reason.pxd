from core.driver.status cimport Entry


cdef extern from "_core/sync/reason.hpp" namespace "ftcuda::core" nogil:
    enum class Reason:
        none
        driver
        absent
        in_host_function
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
        no_builder
        in_builder
        in_body
        memory_of_others
        memory_of_buffer
        other_kernel
        has_memory
        unlaunched
        unfreed
        unplaced
        builders
        spoilt
        cancelled
        expired
        queue_full
        raised
        other_capture
        captured_event

    cppclass Status:
        Status()
        Status(Reason)
        bint ok()
        void ignore()
        Reason reason()
        Entry entry()
        int code()
