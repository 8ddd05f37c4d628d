#include "graph_turn.hpp"

namespace ftcuda::core {

Mutex& graph_turn = *new Mutex(Rank::graph);  // never destroyed: graphs may outlive the static objects

}  // namespace ftcuda::core
