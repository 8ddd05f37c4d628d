// What of an executable can be exchanged for what. Under the lock.
#pragma once

#include "../state/graph.hpp"

namespace ftcuda::sim {

// Whether a node that does the one can be made to do the other.
bool can_replace(const Operation& now, const Operation& wanted);
// It does from here on; what is an attribute of a kernel's node stays.
void take_over(Operation& now, Operation wanted);

struct Difference {
    int result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    const Node* node = nullptr;  // of the graph that was wanted
    const Node* from = nullptr;  // the begin of an edge to it that the other graph has not
};

// Nodes are paired in an order in which each comes behind what it depends on.
Difference compare(const Graph& now, const Graph& wanted);
void take_over_all(Graph& now, const Graph& wanted);

}  // namespace ftcuda::sim
