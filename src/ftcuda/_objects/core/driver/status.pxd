cdef extern from "_driver/status.hpp" namespace "ftcuda::driver" nogil:
    cppclass Entry:
        pass

    cppclass EntryDescription:
        const char* symbol
        int version

    const EntryDescription& describe(Entry entry)
    const char* error_name(int code)
    const char* error_text(int code)
