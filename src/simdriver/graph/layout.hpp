// The order of a launch: which nodes come behind which, and in which queue each goes. Under the lock.
#pragma once

#include "../state/graph.hpp"

namespace ftcuda::sim {

// A node that does something, of the graph or of a child graph, behind others by their indices.
struct Step {
    Node* node = nullptr;
    std::vector<std::size_t> after;
    std::size_t lane = 0;  // 0 is the stream's own queue; no queue orders what the graph does not
};

struct Layout {
    std::vector<Step> steps;
    std::vector<std::size_t> last;  // the steps that nothing comes behind
    std::size_t lanes = 1;
};

Layout lay_out(const Graph& graph);

}  // namespace ftcuda::sim
