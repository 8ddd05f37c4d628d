// What each kind of node does, of the parameters that calls give, or the driver's error. Under the lock.
#pragma once

#include "../state/driver_state.hpp"
#include "../state/operation.hpp"

namespace ftcuda::sim {

CUresult describe_kernel(const CUDA_KERNEL_NODE_PARAMS_v1* given, Operation& operation);
CUresult describe_kernel(const CUDA_KERNEL_NODE_PARAMS_v2* given, Operation& operation);
CUresult describe_copy(const CUDA_MEMCPY3D* given, CUcontext context, Operation& operation);
CUresult describe_fill(const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context, Operation& operation);
CUresult describe_host(const CUDA_HOST_NODE_PARAMS* given, Operation& operation);
CUresult describe_child(CUgraph given, Operation& operation);  // a copy of the graph
CUresult describe_record(CUevent given, Operation& operation);
CUresult describe_wait(CUevent given, Operation& operation);
// Bodies of the node are made, and shown in what was given.
CUresult describe_conditional(CUDA_CONDITIONAL_NODE_PARAMS& given, CUgraph graph, Operation& operation);
// What needs no more to be known than that.
CUresult describe(const CUgraphNodeParams* given, Operation& operation);

// The context that a node is to run in; the current one for null.
CUresult find_context(CUcontext handle, Context*& context);

}  // namespace ftcuda::sim
