// Exports: nodes that copy and fill memory.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../memory/transfer.hpp"
#include "executable_nodes.hpp"
#include "kinds.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

namespace {

template <class Described>
CUresult checked(const Described& described, CUcontext handle, Operation& operation) {
    Context* context = nullptr;
    if (const CUresult result = find_context(handle, context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check(described); result != CUDA_SUCCESS) return result;
    operation = {described, uses_of(described)};
    return CUDA_SUCCESS;
}

}  // namespace

CUresult describe_copy(const CUDA_MEMCPY3D* given, CUcontext context, Operation& operation) {
    return given == nullptr ? CUDA_ERROR_INVALID_VALUE : checked(as_copy(*given), context, operation);
}

CUresult describe_fill(const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context, Operation& operation) {
    return given == nullptr ? CUDA_ERROR_INVALID_VALUE : checked(FillOperation{*given}, context, operation);
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                                std::size_t count, const CUDA_MEMCPY3D* parameters, CUcontext context) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddMemcpyNode);
    return add(made, graph, dependencies, count,
               [=](Operation& operation) { return describe_copy(parameters, context, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* parameters) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphMemcpyNodeGetParams);
    return ask<CopyOperation>(handle, [=](Node&, CopyOperation& copy) { *parameters = copy.shape; });
}

FTCUDA_SIM_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* parameters) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphMemcpyNodeSetParams);
    return change<CopyOperation>(node,
                                 [=](Operation& operation) { return describe_copy(parameters, nullptr, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                          const CUDA_MEMCPY3D* parameters, CUcontext context) {
    const Inside inside{executable, node};
    FTCUDA_SIM_ENTER(cuGraphExecMemcpyNodeSetParams);
    return change_in<CopyOperation>(
        executable, node, [=](Operation& operation) { return describe_copy(parameters, context, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                                std::size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters,
                                                CUcontext context) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddMemsetNode);
    return add(made, graph, dependencies, count,
               [=](Operation& operation) { return describe_fill(parameters, context, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* parameters) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphMemsetNodeGetParams);
    return ask<FillOperation>(handle, [=](Node&, FillOperation& fill) { *parameters = fill.shape; });
}

FTCUDA_SIM_EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* parameters) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphMemsetNodeSetParams);
    return change<FillOperation>(node,
                                 [=](Operation& operation) { return describe_fill(parameters, nullptr, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                          const CUDA_MEMSET_NODE_PARAMS* parameters,
                                                          CUcontext context) {
    const Inside inside{executable, node};
    FTCUDA_SIM_ENTER(cuGraphExecMemsetNodeSetParams);
    return change_in<FillOperation>(
        executable, node, [=](Operation& operation) { return describe_fill(parameters, context, operation); });
}

}  // namespace ftcuda::sim
