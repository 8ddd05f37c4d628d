from libc.stdint cimport uint64_t

from core.device.device cimport Context
from core.sync.reason cimport Status


cdef extern from "_core/memory/graph_pool.hpp" namespace "ftcuda::core::graph_pool" nogil:
    Status get_attribute(Context& context, int attribute, uint64_t& value)
    Status reset_attribute(Context& context, int attribute)
    Status trim(Context& context)
