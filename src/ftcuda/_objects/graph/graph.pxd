cimport core.graph.graph as core
from core.graph.graph_definition cimport GraphDefinition


cdef class Graph:
    cdef core.Graph* _graph        # constant; destroyed by the last lease after close()
    cdef object __weakref__

    @staticmethod
    cdef Graph instantiate(GraphDefinition& definition, object options, object builder)
