from libcpp cimport bool

from core.completion.completion cimport Waiter
from core.completion.deferred_release cimport ForeignReference
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/completion/when_done.hpp" namespace "ftcuda::core" nogil:
    cppclass WhenDoneWaiter(Waiter):
        WhenDoneWaiter(Ref[ForeignReference] function) except +


cdef extern from "_core/completion/when_done.hpp" namespace "ftcuda::core::when_done" nogil:
    struct Call:
        void* function
        Status status

    bool claim_thread()
    void give_claim_back()
    Call take() except +
    void end()
