from libc.stdint cimport uint64_t
from libcpp cimport bool
from libcpp.utility cimport pair
from libcpp.vector cimport vector

from core.device.device cimport Context
from core.graph.captured_launch cimport CapturedLaunch
from core.graph.graph_node cimport CUgraphNodeParams, GraphNode, Kept
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    ctypedef void* CUgraph


cdef extern from "_core/graph/node_change.hpp" namespace "ftcuda::core" nogil:
    cppclass NodeChange:
        pass


cdef extern from "_core/graph/graph_definition.hpp" namespace "ftcuda::core" nogil:
    cppclass NodeState "ftcuda::core::GraphDefinition::NodeState":
        CUgraphNodeParams parameters
        Kept kept
        vector[Ref[GraphDefinition]] within

    cppclass GraphDefinition:
        @staticmethod
        Status create(Context& context, Ref[GraphDefinition]& definition) except +
        Context& context()
        GraphDefinition& root()
        CUgraph cu_graph()
        Status share_cu_graph(CUgraph& graph) except +
        vector[const CapturedLaunch*] launches() except +
        Status print_dot(const char* path, unsigned flags)
        Status is_there(bool& there)
        Status is_node_there "is_there"(const GraphNode& node, bool& there)
        Status nodes(vector[Ref[GraphNode]]& nodes) except +
        Status edges(vector[pair[Ref[GraphNode], Ref[GraphNode]]]& edges) except +
        Status state(const GraphNode& node, NodeState& state) except +
        Status add(const vector[Ref[GraphNode]]& before, NodeChange& change, Ref[GraphNode]& node) except +
        Status update(GraphNode& node, NodeChange& change) except +
        Status destroy(GraphNode& node) except +
        Status connect(GraphNode& node, bool forward, const vector[Ref[GraphNode]]& others) except +
        Status disconnect(GraphNode& node, bool forward, const vector[Ref[GraphNode]]& others) except +
        Status create_condition(bool has_default, unsigned value, uint64_t& condition) except +
        void retain()
        void release()
