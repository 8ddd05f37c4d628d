// Conditions and the nodes that read them: what the driver asks of a graph that has some. Under the lock.
#pragma once

#include "../state/graph.hpp"

namespace ftcuda::sim {

// The condition with the handle, or null.
Condition* find_condition(Conditions& conditions, CUgraphConditionalHandle handle) noexcept;
// Whether a node of the graph reads it, there or in child graphs and bodies.
bool is_read(const Graph& graph, CUgraphConditionalHandle handle);
// Whether the graph's hierarchy has conditions, or the graph conditional nodes: such graphs cannot be copied.
bool has_conditions(const Graph& graph);

// What keeps a graph from being instantiated: a CUgraphInstantiateResult and the node, where there is one.
struct Obstacle {
    int result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    CUresult error = CUDA_SUCCESS;
    const Node* node = nullptr;
};
Obstacle obstacle_in(const Graph& graph);

}  // namespace ftcuda::sim
