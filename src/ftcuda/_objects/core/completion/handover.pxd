from libcpp cimport bool

from core.sync.limit cimport Limit
from core.sync.reason cimport Status


cdef extern from "_core/completion/handover.hpp" namespace "ftcuda::core::handover" nogil:
    void put(void* call) except +
    bool claim_thread()
    void give_claim_back()
    void* take() except +
    void* take_scheduled() except +
    void end_release()
    void finish()
    size_t unfinished()
    void adopt_scheduled() except +
    Status wait_until_at_most(size_t wanted, const Limit& limit)
