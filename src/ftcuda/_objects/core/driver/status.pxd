cdef extern from "_driver/status.hpp" namespace "ftcuda::driver" nogil:
    cppclass Entry:
        pass

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

    cppclass EntryDescription:
        const char* symbol
        int version

    const EntryDescription& describe(Entry entry)
    const char* error_name(int code)
    const char* error_text(int code)

    cppclass Status:
        Status()
        Status(Reason)
        bint ok()
        void ignore()
        Reason reason()
        Entry entry()
        int code()
