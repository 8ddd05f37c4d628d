// The nodes of executables, which calls name by those of the graph that they were made of. The templates take the lock.
#pragma once

#include "executable.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

// Under the lock.
CUresult find_twin(CUgraphExec executable, CUgraphNode node, Node*& twin);
// What a node of an executable does from its next launch on, or why it cannot.
CUresult replace(Node& twin, Operation operation);

CUresult replace_child(CUgraphExec executable, CUgraphNode node, CUgraph child);

template <class What, class Describe>
CUresult change_in(CUgraphExec executable, CUgraphNode node, Describe describe) {
    const Guard lock(driver_state().mutex);
    Node* twin = nullptr;
    if (const CUresult result = find_twin(executable, node, twin); result != CUDA_SUCCESS) return result;
    if (!std::holds_alternative<What>(twin->operation.what)) return CUDA_ERROR_INVALID_VALUE;
    Operation operation;
    if (const CUresult result = describe(operation); result != CUDA_SUCCESS) return result;
    return replace(*twin, std::move(operation));
}

}  // namespace ftcuda::sim
