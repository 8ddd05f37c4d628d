// Exports: nodes that call a function of the host's.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "executable_nodes.hpp"
#include "kinds.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

CUresult describe_host(const CUDA_HOST_NODE_PARAMS* given, Operation& operation) {
    if (given == nullptr || given->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    operation.what = HostOperation{given->fn, given->userData};
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddHostNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                              std::size_t count, const CUDA_HOST_NODE_PARAMS* parameters) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddHostNode);
    return add(made, graph, dependencies, count,
               [=](Operation& operation) { return describe_host(parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* parameters) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphHostNodeGetParams);
    return ask<HostOperation>(handle,
                              [=](Node&, HostOperation& host) { *parameters = {host.function, host.user_data}; });
}

FTCUDA_SIM_EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphHostNodeSetParams);
    return change<HostOperation>(node, [=](Operation& operation) { return describe_host(parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                        const CUDA_HOST_NODE_PARAMS* parameters) {
    const Inside inside{executable, node};
    FTCUDA_SIM_ENTER(cuGraphExecHostNodeSetParams);
    return change_in<HostOperation>(executable, node,
                                    [=](Operation& operation) { return describe_host(parameters, operation); });
}

}  // namespace ftcuda::sim
