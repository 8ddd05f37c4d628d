#include "late_use.hpp"

#include "../state/allocations.hpp"
#include "violations.hpp"

namespace ftcuda::sim::late_use {

void check(const Allocation& allocation) {
    if (allocation.freeing) violation("work submitted with memory whose free is already submitted");
    if (allocation.of_graph && !allocation.of_graph->is_allocated)
        violation("work submitted with memory of a graph that is not allocated");
}

void remember(std::uint64_t address, std::vector<Use>& uses) {
    const Allocation* const allocation = find_allocation(address, 1);
    if (allocation == nullptr) return;
    if (!allocation->of_graph) check(*allocation);  // where it may be used is checked when the graph is launched
    uses.push_back({allocation->begin, allocation->id, address});
}

void check_again(const std::vector<Use>& uses) {
    for (const Use& use : uses) {
        const auto found = driver_state().allocations.find(use.begin);
        if (found != driver_state().allocations.end() && found->second.id == use.id) continue;
        const Allocation* const now = use.is_by_address ? find_allocation(use.address, 1) : nullptr;
        if (now != nullptr) check(*now);
        else violation("graph launched with memory that was freed since");
    }
}

void check_again(const Module& module) {
    if (module.is_unloaded) violation("graph launched with a kernel whose module was unloaded since");
}

void check_again(CUevent handle, const Event& event) {
    if (driver_state().events.find(handle).get() != &event)
        violation("graph launched with an event that was destroyed since");
}

}  // namespace ftcuda::sim::late_use
