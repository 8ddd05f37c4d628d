from libcpp.vector cimport vector

from core.graph.captured_launch cimport CapturedLaunch
from core.sync.reason cimport Status


cdef extern from "_core/graph/graph_definition.hpp" namespace "ftcuda::core" nogil:
    cppclass GraphDefinition:
        vector[const CapturedLaunch*] launches() except +
        Status print_dot(const char* path, unsigned flags)
