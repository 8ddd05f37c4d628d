from libcpp cimport bool

from core.device.device cimport Context, CUevent
from core.sync.limit cimport Limit
from core.sync.reason cimport Status
from core.sync.ref cimport Shared


cdef extern from "_core/completion/deferred_release.hpp" namespace "ftcuda::core::deferred_release" nogil:
    cppclass Retained:
        void* const object

    cppclass Retention:
        Retention()
        Retained* get()

    void retain(Retention& retention, void* object) except +
    void release_after(Context& context, CUevent event, Retention retention) except +
    bool is_over(Context& context, CUevent event)
    Status wait_for(Context& context, CUevent event)
    bool is_ending()
    Status wait_for_end(const Limit& limit)
    bool is_pending()
    void* pop_done()

    cppclass ForeignReference(Shared):
        ForeignReference(void* object) except +
        void* object()
