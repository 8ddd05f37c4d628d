#include "memory.hpp"

#include "../_driver/table.hpp"
#include "reclaim.hpp"

namespace ftcuda::core {

using driver::cu;
using namespace abi;

Status MemoryResource::default_pool(Context& context, Ref<MemoryResource>& resource) {
    if (!context.device().has_memory_pools()) return Reason::not_supported;
    CUmemoryPool pool = nullptr;
    const Status status = context.observe(cu.cuDeviceGetDefaultMemPool(&pool, context.device().cu_device()));
    if (!status.ok()) return status;
    resource = Ref<MemoryResource>::adopt(new MemoryResource(context, MemoryKind::device, pool, false));
    return {};
}

Status MemoryResource::make_pool(Context& context, MemoryKind kind, std::size_t limit, Ref<MemoryResource>& resource) {
    const Device& device = context.device();
    const bool supported = kind == MemoryKind::device   ? device.has_memory_pools()
                           : kind == MemoryKind::pinned ? device.has_host_pools()
                                                        : device.has_managed_pools();
    if (!supported) return Reason::not_supported;
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();

    CUmemPoolProps properties{};
    properties.allocType = kind == MemoryKind::managed ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.location = kind == MemoryKind::pinned ? CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0}
                                                     : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, device.cu_device()};
    properties.maxSize = limit;
    CUmemoryPool pool = nullptr;
    if (const Status status = context.observe(cu.cuMemPoolCreate(&pool, &properties)); !status.ok()) return status;
    Ref<MemoryResource> made = Ref<MemoryResource>::adopt(new MemoryResource(context, kind, pool, true));
    if (kind == MemoryKind::pinned) {
        // A host pool is reachable from its devices only after it was opened to them.
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device.cu_device()}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        if (const Status status = context.observe(cu.cuMemPoolSetAccess(pool, &access, 1)); !status.ok()) {
            made->close();
            return status;
        }
    }
    resource = std::move(made);
    return {};
}

Ref<MemoryResource> MemoryResource::plain(Context& context, MemoryKind kind) {
    return Ref<MemoryResource>::adopt(new MemoryResource(context, kind, nullptr, false));
}

Status MemoryResource::get_attribute(int attribute, std::uint64_t& value) noexcept {
    const Lease<MemoryResource> lease(*this);
    if (!lease) return Reason::closed;
    if (!is_pool()) return Reason::not_supported;
    const reclaim::RelaxedCapture relaxed;
    if (attribute > CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        return context_->observe(cu.cuMemPoolGetAttribute(cu_pool_, attribute, &value));
    }
    int flag = 0;  // the reuse attributes are ints, the others 64 bits wide
    const Status status = context_->observe(cu.cuMemPoolGetAttribute(cu_pool_, attribute, &flag));
    value = static_cast<std::uint64_t>(flag);
    return status;
}

Status MemoryResource::set_attribute(int attribute, std::uint64_t value) noexcept {
    const Lease<MemoryResource> lease(*this);
    if (!lease) return Reason::closed;
    if (!is_pool()) return Reason::not_supported;
    const reclaim::RelaxedCapture relaxed;
    if (attribute > CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        return context_->observe(cu.cuMemPoolSetAttribute(cu_pool_, attribute, &value));
    }
    int flag = value != 0 ? 1 : 0;
    return context_->observe(cu.cuMemPoolSetAttribute(cu_pool_, attribute, &flag));
}

Status MemoryResource::trim(std::size_t bytes_to_keep) noexcept {
    const Lease<MemoryResource> lease(*this);
    if (!lease) return Reason::closed;
    if (!is_pool()) return {};  // plain memory keeps nothing back
    const reclaim::RelaxedCapture relaxed;
    return context_->observe(cu.cuMemPoolTrimTo(cu_pool_, bytes_to_keep));
}

Status MemoryResource::allocate(std::size_t bytes, CUstream stream, CUdeviceptr& pointer) noexcept {
    if (is_pool()) return context_->observe(cu.cuMemAllocFromPoolAsync(&pointer, bytes, cu_pool_, stream));
    switch (kind_) {
    case MemoryKind::device:
        return context_->observe(cu.cuMemAlloc_v2(&pointer, bytes));
    case MemoryKind::managed:
        return context_->observe(cu.cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL));
    case MemoryKind::pinned:
        break;
    }
    void* host = nullptr;
    const Status status = context_->observe(cu.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE));
    pointer = reinterpret_cast<std::uintptr_t>(host);  // unified addressing: one address for host and device
    return status;
}

Status MemoryResource::free_ordered(CUdeviceptr pointer, CUstream stream) noexcept {
    return context_->observe(cu.cuMemFreeAsync(pointer, stream));
}

Status MemoryResource::free_now(CUdeviceptr pointer) noexcept {
    if (kind_ == MemoryKind::pinned) {
        return context_->observe(cu.cuMemFreeHost(reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer))));
    }
    return context_->observe(cu.cuMemFree_v2(pointer));
}

Status MemoryResource::free_idle(CUdeviceptr pointer) noexcept {
    if (!is_pool()) return free_now(pointer);
    CUstream stream = nullptr;
    const Status status = context_->housekeeping_stream(stream);
    return status.ok() ? free_ordered(pointer, stream) : status;
}

void MemoryResource::destroy() noexcept {
    if (!owned_ || !context_->may_destroy()) return;
    // Not at once: with the free of its last buffer still queued, destroying a pool of host memory hung the stream for ever
    // (driver 580, four threads with a pool each on one stream).
    context_->retire([context = context_, pool = cu_pool_] {
        reclaim::post(context->observe(cu.cuMemPoolDestroy(pool)), "destroy", "memory pool");
    });
}

}  // namespace ftcuda::core
