from libcpp cimport bool

from core.device.device cimport Context
from core.driver.status cimport Status
from core.stream.event cimport CUevent
from core.stream.stream cimport Stream
from core.sync.lifetime cimport Shared


cdef extern from "_core/stream/kept.hpp" namespace "ftcuda::core::kept" nogil:
    void keep(Stream& stream, void* object) except +
    void keep(Context& context, CUevent event, void* object) except +
    bool is_over(Context& context, CUevent event)
    Status wait_for(Context& context, CUevent event)
    Status order_after(Stream& stream, Context& context, CUevent event)
    bool any()
    void* take_done() except +

    cppclass Guest(Shared):
        Guest(void* object)
