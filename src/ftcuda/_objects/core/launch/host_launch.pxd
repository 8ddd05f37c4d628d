from core.completion.deferred_release cimport Retention
from core.completion.host_call cimport CUhostFn
from core.stream.stream cimport Stream
from core.sync.reason cimport Status


cdef extern from "_core/launch/host_launch.hpp" namespace "ftcuda::core" nogil:
    Status host_launch(Stream& stream, CUhostFn function, void* user_data, Retention retention) except +
