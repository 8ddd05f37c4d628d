// The order of a launch: which nodes come behind which, and in which queue each goes. Under the lock.
#pragma once

#include "../state/graph.hpp"

namespace ftcuda::sim {

struct Layout {
    std::vector<Step> steps;
    std::vector<std::size_t> last;  // the steps that nothing comes behind
    std::size_t lanes = 1;
};

Layout lay_out(const Graph& graph);

}  // namespace ftcuda::sim
