#include "replacement.hpp"

#include "../memory/transfer.hpp"

#include <algorithm>

namespace ftcuda::sim {

namespace {

bool can_replace(const KernelOperation& now, const KernelOperation& wanted) {
    return now.function->module->context == wanted.function->module->context;
}

// Of one dimension, between memory of the same kinds as before.
bool can_replace(const CopyOperation& now, const CopyOperation& wanted) { return are_alike(now, wanted); }
bool can_replace(const FillOperation& now, const FillOperation& wanted) { return are_alike(now, wanted); }

// What else is of the same kind.
template <class Now, class Wanted>
bool can_replace(const Now&, const Wanted&) {
    return std::is_same_v<Now, Wanted>;
}

std::size_t place_of(const Graph& graph, const Node* node) {
    const auto is_it = [=](const std::shared_ptr<Node>& each) { return each.get() == node; };
    return static_cast<std::size_t>(std::find_if(graph.nodes.begin(), graph.nodes.end(), is_it) - graph.nodes.begin());
}

Difference compare_nodes(const Graph& now, const Graph& wanted, std::size_t index) {
    const Node& mine = *now.nodes[index];
    const Node& other = *wanted.nodes[index];
    if (mine.operation.type() != other.operation.type()) return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, &other};
    if (mine.dependencies.size() != other.dependencies.size())
        return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &other};
    for (const Node* const before : other.dependencies) {
        const Node& twin = *now.nodes[place_of(wanted, before)];
        if (!are_connected(twin, mine)) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &other, before};
    }
    if (const auto* const child = std::get_if<ChildOperation>(&mine.operation.what))
        return compare(*child->graph, *std::get<ChildOperation>(other.operation.what).graph);
    if (can_replace(mine.operation, other.operation)) return {};
    const bool is_kernel = std::holds_alternative<KernelOperation>(mine.operation.what);
    return {is_kernel ? CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
                      : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
            &other};
}

}  // namespace

bool can_replace(const Operation& now, const Operation& wanted) {
    return std::visit([](const auto& mine, const auto& other) { return can_replace(mine, other); }, now.what,
                      wanted.what);
}

void take_over(Operation& now, Operation wanted) {
    const auto* const mine = std::get_if<KernelOperation>(&now.what);
    auto* const other = std::get_if<KernelOperation>(&wanted.what);
    if (mine != nullptr && other != nullptr) {
        other->shape.cooperative = mine->shape.cooperative;
        other->shape.cluster = mine->shape.cluster;
    }
    now = std::move(wanted);
}

Difference compare(const Graph& now, const Graph& wanted) {
    if (now.nodes.size() != wanted.nodes.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
    for (std::size_t index = 0; index < now.nodes.size(); ++index) {
        const Difference found = compare_nodes(now, wanted, index);
        if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return found;
    }
    return {};
}

void take_over_all(Graph& now, const Graph& wanted) {
    for (std::size_t index = 0; index < now.nodes.size(); ++index) {
        Operation& mine = now.nodes[index]->operation;
        const Operation& other = wanted.nodes[index]->operation;
        if (const auto* const child = std::get_if<ChildOperation>(&mine.what)) {
            take_over_all(*child->graph, *std::get<ChildOperation>(other.what).graph);
        } else {
            mine = other;
        }
    }
}

}  // namespace ftcuda::sim
