// Exports: which nodes of an executable run, and what its child graphs do.
#include "executable_nodes.hpp"

#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "replacement.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

CUresult find_twin(CUgraphExec handle, CUgraphNode node_handle, Node*& twin) {
    std::shared_ptr<Executable> executable;
    if (const CUresult result = find_executable(handle, executable); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Node> node;
    if (const CUresult result = find_node(node_handle, node); result != CUDA_SUCCESS) return result;
    twin = find_copy(*executable->graph, node->id);
    return twin != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult replace(Node& twin, Operation operation) {
    if (!can_replace(twin.operation, operation)) return CUDA_ERROR_INVALID_VALUE;
    take_over(twin.operation, std::move(operation));
    return CUDA_SUCCESS;
}

CUresult replace_child(CUgraphExec executable, CUgraphNode node, CUgraph child) {
    Node* twin = nullptr;
    if (const CUresult result = find_twin(executable, node, twin); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(child, graph); result != CUDA_SUCCESS) return result;
    const auto* const mine = std::get_if<ChildOperation>(&twin->operation.what);
    if (mine == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (compare(*mine->graph, *graph).result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    take_over_all(*mine->graph, *graph);
    return CUDA_SUCCESS;
}

namespace {

bool can_be_disabled(const Node& node) {
    switch (node.operation.type()) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET: return true;
    default: return false;
    }
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node, unsigned enabled) {
    const Inside inside{executable, node};
    FTCUDA_SIM_ENTER(cuGraphNodeSetEnabled);
    const Guard lock(driver_state().mutex);
    Node* twin = nullptr;
    if (const CUresult result = find_twin(executable, node, twin); result != CUDA_SUCCESS) return result;
    if (!can_be_disabled(*twin)) return CUDA_ERROR_INVALID_VALUE;
    twin->is_enabled = enabled != 0;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec executable, CUgraphNode node, unsigned* enabled) {
    const Inside inside{executable, node};
    FTCUDA_SIM_ENTER(cuGraphNodeGetEnabled);
    const Guard lock(driver_state().mutex);
    Node* twin = nullptr;
    if (const CUresult result = find_twin(executable, node, twin); result != CUDA_SUCCESS) return result;
    if (!can_be_disabled(*twin)) return CUDA_ERROR_INVALID_VALUE;
    *enabled = twin->is_enabled ? 1 : 0;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child) {
    const Inside inside{executable, node, child};
    FTCUDA_SIM_ENTER(cuGraphExecChildGraphNodeSetParams);
    const Guard lock(driver_state().mutex);
    return replace_child(executable, node, child);
}

}  // namespace ftcuda::sim
