// An oracle for nodes that use what their graph allocates or frees without an order: each must come behind the node
// that allocates it, and before the one that frees it. Under the lock.
//
// The memory is there for all that the device does between the two, so that a run alone may not show it.
#pragma once

#include "../state/graph.hpp"

namespace ftcuda::sim::memory_order {

// The graph is launched.
void check(const std::vector<Step>& steps);

}  // namespace ftcuda::sim::memory_order
