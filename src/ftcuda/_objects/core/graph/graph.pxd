from libcpp cimport bool

from core.device.device cimport Context
from core.graph.graph_definition cimport GraphDefinition, NodeChange
from core.graph.graph_node cimport GraphNode
from core.graph.replacement cimport Replacement
from core.memory.operands cimport Operands
from core.stream.stream cimport Stream
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    ctypedef void* CUgraphExec
    unsigned CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
    unsigned CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
    unsigned CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY


cdef extern from "_core/graph/graph.hpp" namespace "ftcuda::core" nogil:
    cppclass Graph:
        @staticmethod
        Status instantiate(GraphDefinition& definition, unsigned flags, unsigned most, Stream* upload,
                           Ref[Graph]& graph) except +
        Context& context()
        CUgraphExec cu_graph_exec()
        Status definition(Ref[GraphDefinition]& definition)
        Status launch(Stream& stream)
        Status launch_with "launch"(Stream& stream, Replacement* replacements, size_t count, Operands operands) except +
        Status upload(Stream& stream)
        unsigned most()
        Status count(unsigned& count)
        size_t scratch_size()
        Status update(GraphDefinition& definition, int& refusal)
        Status update_node "update"(GraphDefinition& of, GraphNode& node, NodeChange& change) except +
        Status enable(GraphDefinition& of, GraphNode& node, bool enabled) except +
        Status is_enabled(GraphDefinition& of, GraphNode& node, bool& enabled) except +
        Status trim()
        void close()
        bool is_closed()
        void retain()
        void release()
