from libcpp cimport bool


cdef extern from "_core/memory/account.hpp" namespace "ftcuda::core" nogil:
    cppclass Figures "ftcuda::core::Account::Figures":
        size_t current_bytes
        size_t current_count
        size_t peak_bytes
        size_t peak_count
        size_t total_bytes
        size_t total_count

    cppclass Account:
        Account(size_t limit)
        bool charge(size_t bytes)
        void confirm(size_t bytes)
        void cancel(size_t bytes)
        void credit(size_t bytes)
        size_t limit()
        Figures figures()
        void release()
