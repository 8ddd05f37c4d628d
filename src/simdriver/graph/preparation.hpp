// What the nodes of a launch do, with their parameters as they are now. Under the lock.
#pragma once

#include "launching.hpp"

namespace ftcuda::sim {

Prepared prepare(const Node& node, Launching& launching);

}  // namespace ftcuda::sim
