from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

cimport core.graph.graph_definition as core
from core.graph.graph_node cimport GraphNode
from core.graph.node_change cimport NodeChange
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


# The definition that an object is of, or is.
cdef class Given:
    cdef core.GraphDefinition* root        # constant, as the other one; each with a count
    cdef core.GraphDefinition* definition

    @staticmethod
    cdef Given of(core.GraphDefinition& definition)


cdef class NodeSource:
    cdef Given _given              # constant
    cdef object __weakref__

    cdef int put_before(self, vector[Ref[GraphNode]]& before) except -1
    cdef object add(self, unique_ptr[NodeChange] change, str verb, tuple involved)
    cdef object add_behind(self, vector[Ref[GraphNode]]& before, unique_ptr[NodeChange] change, str verb,
                           tuple involved)
    cdef object add_conditional(self, object condition, int kind, size_t count, str verb)


cdef class NodeHandle(NodeSource):
    cdef GraphNode* _node          # constant; with a count


cdef object node_object(Given given, Ref[GraphNode]& node)
cdef int put_nodes(object nodes, vector[Ref[GraphNode]]& found) except -1
cdef core.GraphDefinition* definition_of(object child, Given given, str name) except NULL
cdef int declare(int type, object make) except -1
