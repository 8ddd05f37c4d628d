// Memory that graphs allocate and free: each has an address for as long as its graph, an executable of the graph or an
// allocation there lives, and memory behind it from its first launch until it is trimmed. Under the lock.
//
// What is submitted decides who may use, allocate and free it (GraphMemory); what the device has done so far, whether
// anybody reaches it (Allocation::reachable).
#pragma once

#include "../state/driver_state.hpp"
#include "../state/operation.hpp"

namespace ftcuda::sim {

// An address without memory behind it.
CUresult reserve_for_graph(int device, std::uint64_t size, std::uint64_t& begin);

// The allocation with this begin that is a graph's, else null.
Allocation* find_graph_memory(CUdeviceptr begin);
Allocation* find_graph_memory(const Use& use);

// Puts memory behind the address.
CUresult map(Allocation& allocation);

// What such nodes of a graph do, of what calls give; or the driver's error. The address is reserved, and shown in what
// was given.
CUresult describe_allocation(CUDA_MEM_ALLOC_NODE_PARAMS* given, const Graph& graph, Operation& operation);
CUresult describe_free(CUdeviceptr given, const Graph& graph, Operation& operation);

// The device has freed it.
void graph_memory_is_free(CUdeviceptr begin);
// A call that frees it at once.
CUresult free_graph_memory(Allocation& allocation);

}  // namespace ftcuda::sim
