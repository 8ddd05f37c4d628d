cimport core.graph.graph_definition as core
from core.graph.node_change cimport NodeChange
from ftcuda._objects.graph.node_source cimport NodeHandle
from libcpp.memory cimport unique_ptr


cdef class GraphNode(NodeHandle):
    cdef core.NodeState read(self) except *
    cdef int change(self, unique_ptr[NodeChange] change, tuple involved) except -1
