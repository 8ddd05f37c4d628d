from libcpp cimport bool

from core.device cimport Context
from core.event cimport CUevent
from core.status cimport Status
from core.lifetime cimport Shared
from core.stream cimport Stream


cdef extern from "_core/kept.hpp" namespace "ftcuda::core::kept" nogil:
    void keep(Stream& stream, void* object) except +
    void keep(Context& context, CUevent event, void* object) except +
    bool is_over(Context& context, CUevent event)
    Status wait_for(Context& context, CUevent event)
    Status order_after(Stream& stream, Context& context, CUevent event)
    bool any()
    void* take_done() except +

    cppclass Guest(Shared):
        Guest(void* object)
