#include "allocations.hpp"

namespace ftcuda::sim {

Allocation* allocation_at(std::uint64_t address) {
    DriverState& state = driver_state();
    const auto after = state.allocations.upper_bound(address);
    if (after == state.allocations.begin()) return nullptr;
    Allocation& allocation = std::prev(after)->second;
    return address - allocation.begin < allocation.size ? &allocation : nullptr;
}

Allocation* find_allocation(std::uint64_t address, std::uint64_t size) {
    Allocation* const allocation = allocation_at(address);
    return allocation != nullptr && holds(address - allocation->begin, size, allocation->in_use) ? allocation : nullptr;
}

}  // namespace ftcuda::sim
