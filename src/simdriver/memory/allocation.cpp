// Exports: allocating and freeing, pools.
#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../checkers/early_free.hpp"
#include "../checkers/races.hpp"
#include "../checkers/stale_handles.hpp"
#include "../state/allocations.hpp"
#include "../state/profile.hpp"
#include "../timeline/capture_rules.hpp"
#include "../timeline/recording.hpp"
#include "../timeline/stream.hpp"
#include "../timeline/timeline.hpp"
#include "graph_memory.hpp"
#include "memory.hpp"

#include <algorithm>

namespace ftcuda::sim {

namespace {

CUresult allocate_host(void** pointer, std::size_t bytes, unsigned flags) {
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    if ((flags & ~(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t begin = 0;
    const CUresult result = allocate(context->device, Kind::pinned, bytes, nullptr, begin);
    if (result != CUDA_SUCCESS) return result;
    find_allocation(begin, 1)->flags = flags;
    *pointer = reinterpret_cast<void*>(begin);
    return CUDA_SUCCESS;
}

CUresult free_plain(std::uint64_t address, bool host) {
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    if (address == 0) return CUDA_SUCCESS;
    Allocation* const allocation = find_allocation(address, 1);
    const bool fits = allocation != nullptr && allocation->begin == address &&
                      (allocation->kind == Kind::pinned) == host && allocation->kind != Kind::registered &&
                      !allocation->module_owned;
    if (!fits) {
        double_destruction::report("memory freed that is not allocated");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (allocation->of_graph) return free_graph_memory(*allocation);
    release(*allocation);
    return CUDA_SUCCESS;
}

CUresult find_pool(CUmemoryPool handle, std::shared_ptr<Pool>& pool) {
    if (!profile()->memory_pools) return CUDA_ERROR_NOT_SUPPORTED;
    pool = stale_handles::find(driver_state().pools, handle, "memory pool");
    return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The work becomes a node of a graph, or it cannot: as far as that goes, the same for both.
CUresult check_capture(const Stream& stream) {
    if (profile()->driver_version < 11040) return forbid_on_capturing(stream);
    return check_submission(stream);
}

CUresult capture_allocation(Stream& stream, const Pool& pool, std::size_t bytes, CUdeviceptr& pointer) {
    if (const CUresult result = check_capture(stream); result != CUDA_SUCCESS) return result;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = pool.allocation_type;
    parameters.poolProps.location = {pool.location, pool.device};
    parameters.bytesize = bytes;
    Operation operation;
    if (const CUresult result = describe_allocation(&parameters, *stream.capture->graph, operation);
        result != CUDA_SUCCESS)
        return result;
    record(stream, std::move(operation));
    pointer = parameters.dptr;
    return CUDA_SUCCESS;
}

CUresult capture_free(Stream& stream, CUdeviceptr pointer) {
    if (const CUresult result = check_capture(stream); result != CUDA_SUCCESS) return result;
    Operation operation;
    if (const CUresult result = describe_free(pointer, *stream.capture->graph, operation); result != CUDA_SUCCESS)
        return result;
    record(stream, std::move(operation));
    return CUDA_SUCCESS;
}

// Of a graph's memory, when a launch has allocated it.
void submit_free(Allocation& allocation, Stream& stream) {
    allocation.of_graph->is_allocated = false;
    Work work;
    work.what = "a free";
    work.finish = [pointer = allocation.begin] { graph_memory_is_free(pointer); };
    work.run = [pointer = allocation.begin, size = allocation.size] {
        races::touch(pointer, size, ptx::Access::write);
        return CUDA_SUCCESS;
    };
    submit(stream, std::move(work));
}

CUresult allocate_async(CUdeviceptr* pointer, std::size_t bytes, std::shared_ptr<Pool> pool, CUstream handle) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (stream->capture) return capture_allocation(*stream, *pool, bytes, *pointer);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    const Kind kind = pool->location == CU_MEM_LOCATION_TYPE_HOST               ? Kind::pinned
                      : pool->allocation_type == CU_MEM_ALLOCATION_TYPE_MANAGED ? Kind::managed
                                                                                : Kind::device;
    std::uint64_t begin = 0;
    const CUresult result = allocate(stream->context->device, kind, bytes, std::move(pool), begin);
    if (result == CUDA_SUCCESS) *pointer = begin;
    return result;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    FTCUDA_SIM_ENTER(cuMemGetInfo_v2);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    const std::size_t device = static_cast<std::size_t>(context->device);
    const std::uint64_t limit = driver_state().memory_limits[device];
    const std::uint64_t room = limit != 0 ? limit : device_memory();
    *total = device_memory();
    *free = room > driver_state().memory_used[device] ? room - driver_state().memory_used[device] : 0;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
    FTCUDA_SIM_ENTER(cuMemAlloc_v2);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    std::uint64_t begin = 0;
    const CUresult result = allocate(context->device, Kind::device, bytes, nullptr, begin);
    if (result == CUDA_SUCCESS) *pointer = begin;
    return result;
}

FTCUDA_SIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
    FTCUDA_SIM_ENTER(cuMemFree_v2);
    const Guard lock(driver_state().mutex);
    return free_plain(pointer, false);
}

FTCUDA_SIM_EXPORT CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
    FTCUDA_SIM_ENTER(cuMemHostAlloc);
    return allocate_host(pointer, bytes, flags);
}

FTCUDA_SIM_EXPORT CUresult cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
    FTCUDA_SIM_ENTER(cuMemAllocHost_v2);
    return allocate_host(pointer, bytes, 0);
}

FTCUDA_SIM_EXPORT CUresult cuMemFreeHost(void* pointer) {
    FTCUDA_SIM_ENTER(cuMemFreeHost);
    const Guard lock(driver_state().mutex);
    return free_plain(reinterpret_cast<std::uintptr_t>(pointer), true);
}

FTCUDA_SIM_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned flags) {
    FTCUDA_SIM_ENTER(cuMemAllocManaged);
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    std::uint64_t begin = 0;
    const CUresult result = allocate(context->device, Kind::managed, bytes, nullptr, begin);
    if (result == CUDA_SUCCESS) *pointer = begin;
    return result;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceGetDefaultMemPool);
    if (!profile()->memory_pools) return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *pool = driver_state().default_pools[static_cast<std::size_t>(device)]->handle;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemAllocAsync);
    if (!profile()->memory_pools) return CUDA_ERROR_NOT_SUPPORTED;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> found;
    if (const CUresult result = find_stream(stream, found); result != CUDA_SUCCESS) return result;
    return allocate_async(pointer, bytes,
                          driver_state().current_pools[static_cast<std::size_t>(found->context->device)], stream);
}

FTCUDA_SIM_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool handle,
                                                   CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemAllocFromPoolAsync);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Pool> pool;
    if (const CUresult result = find_pool(handle, pool); result != CUDA_SUCCESS) return result;
    return allocate_async(pointer, bytes, pool, stream);
}

FTCUDA_SIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
    FTCUDA_SIM_ENTER(cuMemFreeAsync);
    if (!profile()->memory_pools) return CUDA_ERROR_NOT_SUPPORTED;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (stream->capture) return capture_free(*stream, pointer);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    Allocation* const allocation = find_allocation(pointer, 1);
    if (allocation == nullptr || allocation->begin != pointer || allocation->freeing ||
        allocation->kind == Kind::registered || (allocation->of_graph && !allocation->of_graph->is_allocated)) {
        double_destruction::report("memory freed that is not allocated");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (allocation->of_graph) {
        submit_free(*allocation, *stream);
        return CUDA_SUCCESS;
    }
    allocation->freeing = true;
    Work work;
    work.what = "a free";
    work.finish = [pointer] {
        if (Allocation* const freed = find_allocation(pointer, 1)) release(*freed);
    };
    work.run = [pointer, size = allocation->size] {
        races::touch(pointer, size, ptx::Access::write);
        return CUDA_SUCCESS;
    };
    submit(*stream, std::move(work));
    return CUDA_SUCCESS;
}

// A cache above the driver says how much of an allocation is somebody's, in the order of a stream; at once if that is
// null. 0: it is set aside, and nobody's until the cache gives it out again.
FTCUDA_SIM_EXPORT void ftcuda_memory_in_use(CUdeviceptr pointer, std::size_t bytes, CUstream handle) {
    const Guard lock(driver_state().mutex);
    Allocation* const allocation = find_allocation(pointer, 1);
    if (allocation == nullptr || allocation->begin != pointer) {
        double_destruction::report("memory set aside or given out that is not allocated");
        return;
    }
    bytes = std::min<std::size_t>(bytes, allocation->size);
    allocation->freeing = bytes == 0;
    if (bytes != 0) allocation->in_use = bytes;
    std::shared_ptr<Stream> stream;
    if (handle == nullptr || find_stream(handle, stream) != CUDA_SUCCESS) {
        if (bytes != 0) early_free::check_given_out(*allocation);
        set_reachable(pointer, bytes);
        return;
    }
    Work work;
    work.what = bytes == 0 ? "memory set aside" : "memory given out again";
    work.run = [pointer, bytes, size = allocation->size] {
        races::touch(pointer, size, ptx::Access::write);
        const Guard inside(driver_state().mutex);
        set_reachable(pointer, bytes);
        return CUDA_SUCCESS;
    };
    submit(*stream, std::move(work));
}

FTCUDA_SIM_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
    FTCUDA_SIM_ENTER(cuMemPoolCreate);
    if (!profile()->memory_pools) return CUDA_ERROR_NOT_SUPPORTED;
    const bool host = properties->location.type == CU_MEM_LOCATION_TYPE_HOST;
    const bool managed = properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if (host && !profile()->host_pools) return CUDA_ERROR_NOT_SUPPORTED;
    if (managed && profile()->driver_version < 13000) return CUDA_ERROR_INVALID_VALUE;
    if (!host && !valid_device(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    auto pool = std::make_shared<Pool>();
    pool->device = host ? 0 : properties->location.id;
    pool->location = properties->location.type;
    pool->allocation_type = properties->allocType;
    pool->limit = properties->maxSize;
    *handle = pool->handle = reinterpret_cast<CUmemoryPool>(driver_state().pools.add(pool));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    FTCUDA_SIM_ENTER(cuMemPoolDestroy);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Pool> pool;
    if (const CUresult result = find_pool(handle, pool); result != CUDA_SUCCESS) return result;
    if (pool->is_default) return CUDA_ERROR_INVALID_VALUE;
    driver_state().pools.remove(handle);  // allocations keep the pool
    pool->handle = nullptr;
    for (std::size_t device = 0; device < driver_state().current_pools.size(); ++device) {
        if (driver_state().current_pools[device] == pool)
            driver_state().current_pools[device] = driver_state().default_pools[device];
    }
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool handle, std::size_t bytes_to_keep) {
    FTCUDA_SIM_ENTER(cuMemPoolTrimTo);
    const Guard lock(driver_state().mutex);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Pool> pool;
    if (const CUresult result = find_pool(handle, pool); result != CUDA_SUCCESS) return result;
    pool->reserved = std::max(pool->used, std::min<std::uint64_t>(pool->reserved, bytes_to_keep));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void* value) {
    FTCUDA_SIM_ENTER(cuMemPoolGetAttribute);
    const Guard lock(driver_state().mutex);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Pool> pool;
    if (const CUresult result = find_pool(handle, pool); result != CUDA_SUCCESS) return result;
    const auto put = [value](std::uint64_t number) {
        *static_cast<std::uint64_t*>(value) = number;
        return CUDA_SUCCESS;
    };
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *static_cast<int*>(value) = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return put(pool->threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return put(pool->reserved);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return put(pool->reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return put(pool->used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return put(pool->used_high);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

FTCUDA_SIM_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void* value) {
    FTCUDA_SIM_ENTER(cuMemPoolSetAttribute);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Pool> pool;
    if (const CUresult result = find_pool(handle, pool); result != CUDA_SUCCESS) return result;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *static_cast<int*>(value);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *static_cast<std::uint64_t*>(value); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*static_cast<std::uint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
        (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used_high : pool->reserved_high) =
            attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used : pool->reserved;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

FTCUDA_SIM_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, std::size_t count) {
    FTCUDA_SIM_ENTER(cuMemPoolSetAccess);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Pool> pool;
    if (const CUresult result = find_pool(handle, pool); result != CUDA_SUCCESS) return result;
    for (std::size_t index = 0; index < count; ++index) {
        if (map[index].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !valid_device(map[index].location.id))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
