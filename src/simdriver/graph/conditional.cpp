#include "conditional.hpp"

namespace ftcuda::sim {

namespace {

template <class Test>
bool any_node_within(const Graph& graph, Test test) {
    bool found = false;
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        found = found || test(*node);
        for_each_graph_in(*node, [&](const Graph& inner) { found = found || any_node_within(inner, test); });
    }
    return found;
}

bool is_conditional(const Node& node) { return std::holds_alternative<ConditionalOperation>(node.operation.what); }

// What a node in a body must not do: the device runs bodies without the host.
Obstacle obstacle_of(const Node& node) {
    constexpr auto error = CUDA_ERROR_INVALID_VALUE;
    switch (node.operation.type()) {
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return {CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, error, &node};
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
        const auto& copy = std::get<CopyOperation>(node.operation.what);
        if (copy.source != pageable && copy.destination != pageable) return {};
        return {CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, error, &node};  // an H200's words for it
    }
    default: return {};
    }
}

Obstacle obstacle_in_bodies(const Graph& graph, bool is_in_body) {
    Obstacle found;
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        if (is_in_body) found = obstacle_of(*node);
        const bool are_bodies = is_in_body || is_conditional(*node);
        for_each_graph_in(*node, [&](const Graph& inner) {
            if (found.error == CUDA_SUCCESS) found = obstacle_in_bodies(inner, are_bodies);
        });
        if (found.error != CUDA_SUCCESS) break;
    }
    return found;
}

// Bodies belong to their node's graph, in whatever child graph that is.
bool is_in_body(const Graph& graph) {
    for (const Graph* each = &graph; each->parent != nullptr; each = each->parent) {
        for (const std::shared_ptr<Node>& node : each->parent->nodes) {
            bool is_it = false;
            for_each_graph_in(*node, [&](const Graph& inner) { is_it = is_it || &inner == each; });
            if (is_it && is_conditional(*node)) return true;
        }
    }
    return false;
}

}  // namespace

Condition* find_condition(Conditions& conditions, CUgraphConditionalHandle handle) noexcept {
    return handle == 0 || handle > conditions.size() ? nullptr : &conditions[handle - 1];
}

bool is_read(const Graph& graph, CUgraphConditionalHandle handle) {
    return any_node_within(graph, [&](const Node& node) {
        const auto* const conditional = std::get_if<ConditionalOperation>(&node.operation.what);
        return conditional != nullptr && conditional->handle == handle;
    });
}

bool has_conditions(const Graph& graph) {
    return !root_of(graph).conditions->empty() || any_node_within(graph, is_conditional);
}

Obstacle obstacle_in(const Graph& graph) {
    if (is_in_body(graph)) return {CUDA_GRAPH_INSTANTIATE_ERROR, CUDA_ERROR_NOT_SUPPORTED};
    if (const Obstacle found = obstacle_in_bodies(graph, false); found.error != CUDA_SUCCESS) return found;
    for (CUgraphConditionalHandle handle = 1; handle <= graph.conditions->size(); ++handle) {
        if (!is_read(graph, handle))
            return {CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, CUDA_ERROR_INVALID_VALUE};
    }
    const std::shared_ptr<const Executable> other = graph.executable.lock();
    const bool is_only_instance = !graph.conditions->empty() || has_memory_nodes(graph);
    if (is_only_instance && other && other->handle != nullptr)
        return {CUDA_GRAPH_INSTANTIATE_ERROR, CUDA_ERROR_NOT_SUPPORTED};  // there is one at a time
    return {};
}

}  // namespace ftcuda::sim
