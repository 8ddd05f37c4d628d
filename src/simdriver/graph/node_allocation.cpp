// Exports: nodes that allocate and free memory.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../memory/graph_memory.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

FTCUDA_SIM_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* made, CUgraph handle, const CUgraphNode* dependencies,
                                                  std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphAddMemAllocNode);
    return add(made, handle, dependencies, count, [=](const Graph& graph, Operation& operation) {
        return describe_allocation(parameters, graph, operation);
    });
}

FTCUDA_SIM_EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphMemAllocNodeGetParams);
    return ask<AllocOperation>(handle, [=](Node&, AllocOperation& allocation) {
        *parameters = allocation.parameters;
        parameters->accessDescs = allocation.accesses.empty() ? nullptr : allocation.accesses.data();
    });
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode* made, CUgraph handle, const CUgraphNode* dependencies,
                                                 std::size_t count, CUdeviceptr pointer) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphAddMemFreeNode);
    return add(made, handle, dependencies, count,
               [=](const Graph& graph, Operation& operation) { return describe_free(pointer, graph, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* pointer) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphMemFreeNodeGetParams);
    return ask<FreeOperation>(handle, [=](Node&, FreeOperation& free) { *pointer = free.memory.begin; });
}

}  // namespace ftcuda::sim
