from core.sync.reason cimport Status


cdef extern from "_core/graph/graph_definition.hpp" namespace "ftcuda::core" nogil:
    cppclass GraphDefinition:
        Status print_dot(const char* path, unsigned flags)
