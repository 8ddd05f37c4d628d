// A launch of a graph while it is made. Under the lock.
#pragma once

#include "../code/launch.hpp"
#include "../state/graph.hpp"

namespace ftcuda::sim {

class ConditionalRun;

struct Prepared {
    Work work;
    std::shared_ptr<ConditionalRun> conditional;  // for a conditional node
};

struct Launching {
    Executable& executable;
    Context* context;                                   // of the stream
    SetCondition set_condition;                         // for its kernels
    Prepared (*prepare)(const Node& node, Launching&);  // what a node does, also in a body
    std::size_t body_lanes = 0;                         // of the executable's, taken so far
};

}  // namespace ftcuda::sim
