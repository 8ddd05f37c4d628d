#include "memory_order.hpp"

#include "violations.hpp"

#include <map>

namespace ftcuda::sim::memory_order {

namespace {

using Indices = std::vector<std::size_t>;
constexpr std::size_t none = ~std::size_t{0};

// Which steps allocate, free and use the memory with some begin.
struct Life {
    std::size_t allocation = none;
    std::size_t free = none;
    Indices uses;
};
using Lives = std::map<std::uint64_t, Life>;

void add_uses(const Node& node, std::size_t step, Lives& lives) {
    if (!node.is_enabled) return;
    for (const Use& use : node.operation.uses) {
        const auto found = lives.find(use.begin);
        if (found != lives.end()) found->second.uses.push_back(step);
    }
    for_each_graph_in(node, [&](const Graph& inner) {
        for (const std::shared_ptr<Node>& each : inner.nodes) add_uses(*each, step, lives);
    });
}

Lives lives_in(const std::vector<Step>& steps) {
    Lives lives;
    for (std::size_t step = 0; step < steps.size(); ++step) {
        const Operation& operation = steps[step].node->operation;
        if (const auto* const allocation = std::get_if<AllocOperation>(&operation.what))
            lives[allocation->parameters.dptr].allocation = step;
        if (const auto* const free = std::get_if<FreeOperation>(&operation.what)) lives[free->memory.begin].free = step;
    }
    if (lives.empty()) return lives;
    for (std::size_t step = 0; step < steps.size(); ++step) add_uses(*steps[step].node, step, lives);
    return lives;
}

// Steps stand behind those that they come after.
std::vector<bool> what_comes_before(const std::vector<Step>& steps, std::size_t step) {
    std::vector<bool> before(steps.size());
    Indices open = steps[step].after;
    while (!open.empty()) {
        const std::size_t each = open.back();
        open.pop_back();
        if (before[each]) continue;
        before[each] = true;
        open.insert(open.end(), steps[each].after.begin(), steps[each].after.end());
    }
    return before;
}

void check(const Life& life, const std::vector<Step>& steps) {
    for (const std::size_t use : life.uses) {
        if (life.allocation != none && !what_comes_before(steps, use)[life.allocation])
            violation("graph launched in which work does not come behind the allocation of its memory");
        if (life.free != none && !what_comes_before(steps, life.free)[use])
            violation("graph launched in which work does not come before the free of its memory");
    }
    if (life.allocation != none && life.free != none && !what_comes_before(steps, life.free)[life.allocation])
        violation("graph launched in which a free does not come behind the allocation of its memory");
}

}  // namespace

void check(const std::vector<Step>& steps) {
    for (const auto& [begin, life] : lives_in(steps)) check(life, steps);
}

}  // namespace ftcuda::sim::memory_order
