// What nodes that allocate and free memory do, of the parameters that calls give.
#include "../state/graph.hpp"
#include "../state/profile.hpp"
#include "graph_memory.hpp"
#include "memory.hpp"

#include <algorithm>

namespace ftcuda::sim {

namespace {

template <class Test>
bool any_node(const Graph& graph, Test test) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [&](const std::shared_ptr<Node>& node) { return test(node->operation.what); });
}

bool allocates(const Graph& graph, CUdeviceptr begin) {
    return any_node(graph, [=](const auto& what) {
        const auto* const allocation = std::get_if<AllocOperation>(&what);
        return allocation != nullptr && allocation->parameters.dptr == begin;
    });
}

bool frees(const Graph& graph, const Use& memory) {
    return any_node(graph, [&](const auto& what) {
        const auto* const free = std::get_if<FreeOperation>(&what);
        return free != nullptr && free->memory.begin == memory.begin && free->memory.id == memory.id;
    });
}

// Child graphs and bodies do not allocate, nor free.
CUresult check_place(const Graph& graph) {
    if (!profile()->memory_pools) return CUDA_ERROR_NOT_SUPPORTED;
    return graph.parent == nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult check(const CUDA_MEM_ALLOC_NODE_PARAMS& given) {
    const CUmemPoolProps& properties = given.poolProps;
    if (properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    if (properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED || properties.location.type >= CU_MEM_LOCATION_TYPE_HOST)
        return CUDA_ERROR_NOT_SUPPORTED;  // by this driver
    if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !valid_device(properties.location.id))
        return CUDA_ERROR_INVALID_VALUE;
    if (given.accessDescCount != 0 && given.accessDescs == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < given.accessDescCount; ++index) {
        const CUmemLocation& location = given.accessDescs[index].location;
        if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || !valid_device(location.id)) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult describe_allocation(CUDA_MEM_ALLOC_NODE_PARAMS* given, const Graph& graph, Operation& operation) {
    if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_place(graph); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check(*given); result != CUDA_SUCCESS) return result;
    std::uint64_t begin = 0;
    if (const CUresult result = reserve_for_graph(given->poolProps.location.id, given->bytesize, begin);
        result != CUDA_SUCCESS)
        return result;
    given->dptr = begin;
    AllocOperation allocation{*given, {}};
    if (given->accessDescCount != 0)
        allocation.accesses.assign(given->accessDescs, given->accessDescs + given->accessDescCount);
    operation.what = std::move(allocation);
    return CUDA_SUCCESS;
}

CUresult describe_free(CUdeviceptr given, const Graph& graph, Operation& operation) {
    if (const CUresult result = check_place(graph); result != CUDA_SUCCESS) return result;
    Allocation* const allocation = find_graph_memory(given);
    if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Use memory{allocation->begin, allocation->id};
    GraphMemory& state = *allocation->of_graph;
    const bool is_inside = allocates(graph, given);
    if (frees(graph, memory) || (is_inside ? state.is_freed_outside : state.is_freed_inside))
        return CUDA_ERROR_INVALID_VALUE;
    (is_inside ? state.is_freed_inside : state.is_freed_outside) = true;
    operation.what = FreeOperation{memory};
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
