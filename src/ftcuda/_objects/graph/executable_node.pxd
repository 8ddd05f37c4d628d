cimport core.graph.graph as core
from core.graph.node_change cimport NodeChange
from ftcuda._objects.graph.node_source cimport NodeHandle
from libcpp.memory cimport unique_ptr


cdef class ExecutableGraphNode:
    # Constant.
    cdef core.Graph* _graph        # with a count
    cdef object _owner             # its object
    cdef NodeHandle _node
    cdef object __weakref__

    cdef int change(self, unique_ptr[NodeChange] change, tuple involved) except -1


cdef ExecutableGraphNode executable_node(core.Graph* graph, object owner, object node)
