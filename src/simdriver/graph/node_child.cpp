// Exports: nodes that are a graph, and those that do nothing.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "conditional.hpp"
#include "kinds.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

CUresult describe_child(CUgraph given, Operation& operation) {
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(given, graph); result != CUDA_SUCCESS) return result;
    if (has_conditions(*graph) || has_memory_nodes(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
    operation.what = ChildOperation{copy(*graph, Named::yes)};
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                               std::size_t count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddEmptyNode);
    return add(made, graph, dependencies, count, [](Operation&) { return CUDA_SUCCESS; });
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                                    std::size_t count, CUgraph child) {
    const Inside inside{graph, child};
    FTCUDA_SIM_ENTER(cuGraphAddChildGraphNode);
    if (graph == child) return CUDA_ERROR_INVALID_VALUE;
    return add(made, graph, dependencies, count,
               [=](Operation& operation) { return describe_child(child, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphChildGraphNodeGetGraph);
    return ask<ChildOperation>(handle, [=](Node&, ChildOperation& child) { *graph = child.graph->handle; });
}

}  // namespace ftcuda::sim
