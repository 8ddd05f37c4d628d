// Exports: how much memory graphs have.
#include "graph_memory.hpp"

#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../checkers/early_free.hpp"
#include "../state/profile.hpp"
#include "memory.hpp"

#include <algorithm>

namespace ftcuda::sim {

namespace {

// As much as is set aside for one: what the real driver's pages are.
constexpr std::uint64_t page = 2 << 20;
std::uint64_t pages_of(const Allocation& allocation) { return (allocation.size + page - 1) / page * page; }

GraphMemoryUse& use_of(int device) { return driver_state().graph_memory[static_cast<std::size_t>(device)]; }

void unmap(Allocation& allocation) {
    if (allocation.of_graph->is_mapped) use_of(allocation.device).used -= pages_of(allocation);
    allocation.of_graph->is_mapped = false;
}

bool is_idle(const Allocation& allocation) {
    return !allocation.of_graph->is_allocated && allocation.reachable == 0 && allocation.pending == 0;
}

// The address goes with the last node that allocates it, unless the memory is to be freed yet.
void end_unless_needed(Allocation& allocation) {
    const GraphMemory& memory = *allocation.of_graph;
    if (memory.nodes != 0 || memory.is_allocated || allocation.reachable != 0) return;
    unmap(allocation);
    release(allocation);
}

}  // namespace

CUresult reserve_for_graph(int device, std::uint64_t size, std::uint64_t& begin) {
    const CUresult result = reserve(device, size, begin);
    if (result == CUDA_SUCCESS) find_graph_memory(begin)->of_graph->on_last_node = end_unless_needed;
    return result;
}

Allocation* find_graph_memory(CUdeviceptr begin) {
    const auto found = driver_state().allocations.find(begin);
    if (found == driver_state().allocations.end() || !found->second.of_graph) return nullptr;
    return &found->second;
}

Allocation* find_graph_memory(const Use& use) {
    Allocation* const allocation = find_graph_memory(use.begin);
    return allocation != nullptr && allocation->id == use.id ? allocation : nullptr;
}

CUresult map(Allocation& allocation) {
    if (allocation.of_graph->is_mapped) return CUDA_SUCCESS;
    GraphMemoryUse& use = use_of(allocation.device);
    const std::uint64_t used = use.used + pages_of(allocation);
    if (used > use.reserved) {
        if (!count_used(allocation.device, used - use.reserved)) return CUDA_ERROR_OUT_OF_MEMORY;
        use.reserved = used;
    }
    use.used = used;
    use.used_high = std::max(use.used_high, use.used);
    use.reserved_high = std::max(use.reserved_high, use.reserved);
    allocation.of_graph->is_mapped = true;
    return CUDA_SUCCESS;
}

void graph_memory_is_free(CUdeviceptr begin) {
    Allocation* const allocation = find_graph_memory(begin);
    if (allocation == nullptr) return;
    set_reachable(begin, 0);
    end_unless_needed(*allocation);
}

CUresult free_graph_memory(Allocation& allocation) {
    if (!allocation.of_graph->is_allocated) {
        double_destruction::report("memory of a graph freed that is not allocated");
        return CUDA_ERROR_INVALID_VALUE;
    }
    early_free::check(allocation);
    allocation.of_graph->is_allocated = false;
    allocation.pending = 0;  // reported
    graph_memory_is_free(allocation.begin);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void* value) {
    FTCUDA_SIM_ENTER(cuDeviceGetGraphMemAttribute);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(driver_state().mutex);
    const GraphMemoryUse& use = use_of(device);
    const auto put = [value](std::uint64_t number) {
        *static_cast<std::uint64_t*>(value) = number;
        return CUDA_SUCCESS;
    };
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: return put(use.used);
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: return put(use.used_high);
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: return put(use.reserved);
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: return put(use.reserved_high);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

FTCUDA_SIM_EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void* value) {
    FTCUDA_SIM_ENTER(cuDeviceSetGraphMemAttribute);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (value == nullptr || *static_cast<std::uint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(driver_state().mutex);
    GraphMemoryUse& use = use_of(device);
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: use.used_high = use.used; return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: use.reserved_high = use.reserved; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceGraphMemTrim);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    for (auto& [begin, allocation] : driver_state().allocations) {
        if (allocation.of_graph && allocation.device == device && is_idle(allocation)) unmap(allocation);
    }
    GraphMemoryUse& use = use_of(device);
    count_unused(device, use.reserved - use.used);
    use.reserved = use.used;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
