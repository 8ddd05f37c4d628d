// An oracle for work with memory of which the free is already submitted, or which a cache has set aside, and for
// launches of graphs with what is gone. Under the lock.
//
// What kernels and copies touch beyond what is in use is the device's own fault, as on hardware: memory/.
#pragma once

#include "../state/driver_state.hpp"
#include "../state/operation.hpp"

namespace ftcuda::sim::late_use {

// Work that is submitted now uses the allocation.
void check(const Allocation& allocation);

// Work that is described now, for launches of a graph, uses what is at `address`; `uses` remembers it.
void remember(std::uint64_t address, std::vector<Use>& uses);
// It is launched.
void check_again(const std::vector<Use>& uses);
void check_again(const Module& module);
void check_again(CUevent handle, const Event& event);

}  // namespace ftcuda::sim::late_use
