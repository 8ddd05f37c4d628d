cimport core.graph.graph_definition as core
from ftcuda._objects.graph.node_source cimport Given, NodeSource


cdef class GraphDefinition(NodeSource):
    @staticmethod
    cdef GraphDefinition show(Given given)


cdef int print_dot(core.GraphDefinition& definition, object path, object options, object subject) except -1
