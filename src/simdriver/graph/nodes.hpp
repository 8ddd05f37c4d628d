// Graphs and nodes by their handles, and the steps that calls for nodes of all kinds have in common. Under the lock but
// for what says otherwise.
#pragma once

#include "../state/graph.hpp"
#include "replacement.hpp"

namespace ftcuda::sim {

CUresult find_graph(CUgraph handle, std::shared_ptr<Graph>& graph);
CUresult find_node(CUgraphNode handle, std::shared_ptr<Node>& node);
// Nodes of one graph, each once.
CUresult find_nodes(const CUgraphNode* handles, std::size_t count, const Graph& graph, Nodes& nodes);

// Of the kinds of edges there is one here: the later node waits for the whole of the earlier one.
CUresult check_edges(const CUgraphEdgeData* edges, std::size_t count) noexcept;

// The rest takes the lock.

// What a node does may depend on the graph that it is for.
template <class Describe>
CUresult describe_for(const Graph& graph, Describe& describe, Operation& operation) {
    if constexpr (std::is_invocable_v<Describe&, const Graph&, Operation&>) {
        return describe(graph, operation);
    } else {
        return describe(operation);
    }
}

// A node of what `describe(operation)` or `describe(graph, operation)` says, behind `dependencies`.
template <class Describe>
CUresult add(CUgraphNode* made, CUgraph handle, const CUgraphNode* dependencies, std::size_t count, Describe describe) {
    const Guard lock(driver_state().mutex);
    if (made == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    Nodes before;
    if (const CUresult result = find_nodes(dependencies, count, *graph, before); result != CUDA_SUCCESS) return result;
    Operation operation;
    if (const CUresult result = describe_for(*graph, describe, operation); result != CUDA_SUCCESS) return result;
    *made = add_node(*graph, std::move(operation), before)->handle;
    return CUDA_SUCCESS;
}

// tell(node, what it does): a node of the kind `What`.
template <class What, class Tell>
CUresult ask(CUgraphNode handle, Tell tell) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Node> node;
    if (const CUresult result = find_node(handle, node); result != CUDA_SUCCESS) return result;
    What* const what = std::get_if<What>(&node->operation.what);
    if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    tell(*node, *what);
    return CUDA_SUCCESS;
}

// A node of the kind `What` does what `describe(operation)` says from here on.
template <class What, class Describe>
CUresult change(CUgraphNode handle, Describe describe) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Node> node;
    if (const CUresult result = find_node(handle, node); result != CUDA_SUCCESS) return result;
    if (!std::holds_alternative<What>(node->operation.what)) return CUDA_ERROR_INVALID_VALUE;
    Operation operation;
    if (const CUresult result = describe(operation); result != CUDA_SUCCESS) return result;
    take_over(node->operation, std::move(operation));
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
