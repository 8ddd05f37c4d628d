// What the nodes of a launch do, with their parameters as they are now. Under the lock.
#pragma once

#include "../code/launch.hpp"
#include "../state/graph.hpp"

namespace ftcuda::sim {

class ConditionalRun;

// A launch while it is made.
struct Launching {
    Executable& executable;
    Context* context;            // of the stream
    SetCondition set_condition;  // for its kernels
    std::size_t body_lanes = 0;  // of the executable's, taken so far
};

struct Prepared {
    Work work;
    std::shared_ptr<ConditionalRun> conditional;  // for a conditional node
};

Prepared prepare(const Node& node, Launching& launching);

}  // namespace ftcuda::sim
