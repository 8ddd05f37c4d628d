from libcpp cimport bool

from core.completion.deferred_release cimport ForeignReference, Retention
from core.sync.ref cimport Ref


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    ctypedef void (*CUhostFn)(void* user_data) noexcept nogil


cdef extern from "_core/completion/host_call.hpp" namespace "ftcuda::core" nogil:
    cppclass HostCall:
        @staticmethod
        void* make(Retention& retention, Ref[ForeignReference] function) except +
        @staticmethod
        void run(void* call)


cdef extern from "_core/completion/host_call.hpp" namespace "ftcuda::core::host_calls" nogil:
    bool claim_thread()
    void give_claim_back()
    void* take() except +
    void end()
