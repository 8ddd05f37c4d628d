// Exports: nodes that launch a kernel.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../code/launch.hpp"
#include "../code/module.hpp"
#include "executable_nodes.hpp"
#include "kinds.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

namespace {

template <class Parameters>
CUresult describe_in(const Parameters* given, CUfunction function, Context* context, Operation& operation) {
    const Shape shape{{given->gridDimX, given->gridDimY, given->gridDimZ},
                      {given->blockDimX, given->blockDimY, given->blockDimZ},
                      given->sharedMemBytes,
                      false};
    KernelOperation kernel;
    const CUresult result = describe({function, shape, given->kernelParams, given->extra}, context, kernel);
    if (result != CUDA_SUCCESS) return result;
    operation.uses = uses_of(kernel);
    operation.what = std::move(kernel);
    return CUDA_SUCCESS;
}

// Who sets a node of an executable need not set it again for other memory at the same address: its bytes are the same.
template <class Parameters>
CUresult describe_for_executable(const Parameters* given, Operation& operation) {
    const CUresult result = describe_kernel(given, operation);
    for (Use& use : operation.uses) use.is_by_address = true;
    return result;
}

template <class Parameters>
void tell(Node& node, KernelOperation& kernel, Parameters* parameters) {
    node.shown.clear();
    for (const ptx::Parameter& parameter : entry_of(*kernel.function).parameters)
        node.shown.push_back(kernel.parameters.data() + parameter.offset);
    *parameters = {};
    parameters->gridDimX = kernel.shape.grid[0];
    parameters->gridDimY = kernel.shape.grid[1];
    parameters->gridDimZ = kernel.shape.grid[2];
    parameters->blockDimX = kernel.shape.block[0];
    parameters->blockDimY = kernel.shape.block[1];
    parameters->blockDimZ = kernel.shape.block[2];
    parameters->sharedMemBytes = kernel.shape.shared_bytes;
    parameters->kernelParams = node.shown.data();
}

}  // namespace

CUresult describe_kernel(const CUDA_KERNEL_NODE_PARAMS_v1* given, Operation& operation) {
    if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return describe_in(given, given->func, nullptr, operation);
}

CUresult describe_kernel(const CUDA_KERNEL_NODE_PARAMS_v2* given, Operation& operation) {
    if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUfunction function = given->func != nullptr ? given->func : reinterpret_cast<CUfunction>(given->kern);
    Context* context = nullptr;
    if (const CUresult result = find_context(given->ctx, context); result != CUDA_SUCCESS) return result;
    return describe_in(given, function, context, operation);
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddKernelNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                                std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddKernelNode);
    return add(made, graph, dependencies, count,
               [=](Operation& operation) { return describe_kernel(parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                                   std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddKernelNode_v2);
    return add(made, graph, dependencies, count,
               [=](Operation& operation) { return describe_kernel(parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphKernelNodeGetParams);
    return ask<KernelOperation>(handle, [=](Node& node, KernelOperation& kernel) {
        tell(node, kernel, parameters);
        parameters->func = kernel.handle;
    });
}

FTCUDA_SIM_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphKernelNodeGetParams_v2);
    return ask<KernelOperation>(handle, [=](Node& node, KernelOperation& kernel) {
        tell(node, kernel, parameters);
        if (driver_state().kernels.find(kernel.handle)) {
            parameters->kern = reinterpret_cast<CUkernel>(kernel.handle);
        } else {
            parameters->func = kernel.handle;
        }
        parameters->ctx = kernel.function->module->context->handle;
    });
}

FTCUDA_SIM_EXPORT CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphKernelNodeSetParams);
    return change<KernelOperation>(node, [=](Operation& operation) { return describe_kernel(parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                                         const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphKernelNodeSetParams_v2);
    return change<KernelOperation>(node, [=](Operation& operation) { return describe_kernel(parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                          const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    const Inside inside = Inside::to_set(executable, node);
    FTCUDA_SIM_ENTER(cuGraphExecKernelNodeSetParams);
    return change_in<KernelOperation>(
        executable, node, [=](Operation& operation) { return describe_for_executable(parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                                             const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const Inside inside = Inside::to_set(executable, node);
    FTCUDA_SIM_ENTER(cuGraphExecKernelNodeSetParams_v2);
    return change_in<KernelOperation>(
        executable, node, [=](Operation& operation) { return describe_for_executable(parameters, operation); });
}

}  // namespace ftcuda::sim
