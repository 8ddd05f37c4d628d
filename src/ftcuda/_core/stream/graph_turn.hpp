// Whose turn it is among those who name a graph that is built, or destroy what was made of one: one for all graphs.
//
// The driver wants calls that name one graph one at a time, and knows more of a graph than the caller names: what
// destroys an executable, a copy, or a graph with a copy of another one in it, looks at the graph that it was made of.
// Launches and updates of an executable do not.
#pragma once

#include "../sync/mutex.hpp"

namespace ftcuda::core {

extern Mutex& graph_turn;

}  // namespace ftcuda::core
