#include "replacement.hpp"

#include "../memory/transfer.hpp"

#include <unordered_map>

namespace ftcuda::sim {

namespace {

bool can_replace(const KernelOperation& now, const KernelOperation& wanted) {
    return now.function->module->context == wanted.function->module->context;
}

// Of one dimension, between memory of the same kinds as before.
bool can_replace(const CopyOperation& now, const CopyOperation& wanted) { return are_alike(now, wanted); }
bool can_replace(const FillOperation& now, const FillOperation& wanted) {
    return now.shape.height == 1 && wanted.shape.height == 1;
}

bool can_replace(const AllocOperation& now, const AllocOperation& wanted) {
    return now.parameters.dptr == wanted.parameters.dptr;
}
bool can_replace(const FreeOperation& now, const FreeOperation& wanted) {
    return now.memory.begin == wanted.memory.begin && now.memory.id == wanted.memory.id;
}

// What else is of the same kind.
template <class Now, class Wanted>
bool can_replace(const Now&, const Wanted&) {
    return std::is_same_v<Now, Wanted>;
}

using Twins = std::unordered_map<const Node*, const Node*>;  // of what is wanted

// What a conditional node is stays; its bodies are compared as child graphs are.
Difference compare_conditionals(const ConditionalOperation& now, const ConditionalOperation& wanted,
                                const Node& other) {
    if (now.handle != wanted.handle || now.type != wanted.type || now.context != wanted.context ||
        now.bodies.size() != wanted.bodies.size())
        return {CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, &other};
    for (std::size_t index = 0; index < now.bodies.size(); ++index) {
        const Difference found = compare(*now.bodies[index], *wanted.bodies[index]);
        if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return found;
    }
    return {};
}

Difference compare_nodes(const Node& mine, const Node& other, const Twins& twins) {
    if (mine.operation.type() != other.operation.type()) return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, &other};
    if (mine.dependents.size() != other.dependents.size() || mine.dependencies.size() != other.dependencies.size())
        return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &other};
    for (const Node* const before : other.dependencies) {
        if (!are_connected(*twins.at(before), mine))
            return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &other, before};
    }
    if (const auto* const child = std::get_if<ChildOperation>(&mine.operation.what))
        return compare(*child->graph, *std::get<ChildOperation>(other.operation.what).graph);
    if (const auto* const conditional = std::get_if<ConditionalOperation>(&mine.operation.what))
        return compare_conditionals(*conditional, std::get<ConditionalOperation>(other.operation.what), other);
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
    const std::vector<Node*> mine = in_order(now);
    const std::vector<Node*> others = in_order(wanted);
    if (now.nodes.size() != wanted.nodes.size() || others.size() != wanted.nodes.size())
        return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
    Twins twins;
    for (std::size_t index = 0; index < mine.size(); ++index) twins[others[index]] = mine[index];
    for (std::size_t index = 0; index < mine.size(); ++index) {
        const Difference found = compare_nodes(*mine[index], *others[index], twins);
        if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return found;
    }
    return {};
}

void take_over_all(Graph& now, const Graph& wanted) {
    const std::vector<Node*> others = in_order(wanted);
    std::size_t index = 0;
    for (Node* const node : in_order(now)) {
        Operation& mine = node->operation;
        const Operation& other = others[index++]->operation;
        if (const auto* const child = std::get_if<ChildOperation>(&mine.what)) {
            take_over_all(*child->graph, *std::get<ChildOperation>(other.what).graph);
        } else if (const auto* const conditional = std::get_if<ConditionalOperation>(&mine.what)) {
            const auto& bodies = std::get<ConditionalOperation>(other.what).bodies;
            for (std::size_t body = 0; body < bodies.size(); ++body)
                take_over_all(*conditional->bodies[body], *bodies[body]);
        } else {
            mine = other;
        }
    }
}

}  // namespace ftcuda::sim
