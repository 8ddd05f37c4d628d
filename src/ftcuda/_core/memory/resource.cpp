#include "resource.hpp"

#include "../../_driver/memory_marking.hpp"
#include "../../_driver/table.hpp"
#include "../completion/context_wait.hpp"
#include "../completion/deferred_release.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../sync/fork.hpp"

#include <algorithm>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

// Caches that are not destroyed yet: who destroys one holds a reference to it. Never destroyed itself: memory may be
// freed while the process ends.
struct Caches {
    Mutex mutex{Rank::caches};
    std::vector<MemoryResource*> all GUARDED_BY(mutex);
};

Caches& caches() {
    static Caches& only = *new Caches;
    return only;
}

}  // namespace

Status MemoryResource::default_pool(Context& context, Ref<MemoryResource>& resource) {
    if (!context.device().has_memory_pools()) return Reason::not_supported;
    CUmemoryPool pool = nullptr;
    const Status status = context.observe(cu.cuDeviceGetDefaultMemPool(&pool, context.device().cu_device()));
    if (!status.ok()) return status;
    resource = Ref<MemoryResource>::adopt(new MemoryResource(context, MemoryKind::device, pool, false));
    return {};
}

Status MemoryResource::for_graphs(Context& context, Ref<MemoryResource>& resource) {
    if (!cu.cuDeviceGetGraphMemAttribute) return Status(Reason::absent, Entry::cuDeviceGetGraphMemAttribute);
    const Status status = default_pool(context, resource);
    if (status.ok()) resource->is_for_graphs_ = true;
    return status;
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
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device.cu_device()},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
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

Ref<MemoryResource> MemoryResource::staging(Context& context, std::size_t bytes) {
    Ref<MemoryResource> resource = plain(context, MemoryKind::pinned);
    resource->staging_ = std::make_unique<StagingStore>(context, bytes);
    return resource;
}

Status MemoryResource::cached(MemoryResource& upstream, std::size_t limit, Ref<MemoryResource>& resource) {
    if (upstream.is_cached() || upstream.is_for_graphs() || upstream.staging_) return Reason::not_supported;
    Lease<MemoryResource> lease(upstream);
    if (!lease) return Reason::closed;
    resource =
        Ref<MemoryResource>::adopt(new MemoryResource(*upstream.context_, upstream.kind_, upstream.cu_pool_, false));
    resource->upstream_ = Ref<MemoryResource>(upstream);
    resource->cache_ = std::make_unique<Cache>(*upstream.context_, limit);
    {
        const Lock lock(caches().mutex);
        caches().all.push_back(resource.get());
    }
    lease.detach();  // the cache's until it is destroyed
    return {};
}

Status MemoryResource::get_attribute(int attribute, std::uint64_t& value) noexcept {
    if (!is_pool()) return Reason::not_supported;
    if (const Status status = context_->usable(); !status.ok()) return status;
    const RelaxedCapture relaxed;
    if (attribute > CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        return context_->observe(cu.cuMemPoolGetAttribute(cu_pool_, attribute, &value));
    }
    int flag = 0;  // the reuse attributes are ints, the others 64 bits wide
    const Status status = context_->observe(cu.cuMemPoolGetAttribute(cu_pool_, attribute, &flag));
    value = static_cast<std::uint64_t>(flag);
    return status;
}

Status MemoryResource::set_attribute(int attribute, std::uint64_t value) noexcept {
    if (!is_pool()) return Reason::not_supported;
    if (const Status status = context_->usable(); !status.ok()) return status;
    const RelaxedCapture relaxed;
    if (attribute > CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        return context_->observe(cu.cuMemPoolSetAttribute(cu_pool_, attribute, &value));
    }
    int flag = value != 0 ? 1 : 0;
    return context_->observe(cu.cuMemPoolSetAttribute(cu_pool_, attribute, &flag));
}

Status MemoryResource::trim(std::size_t bytes_to_keep) noexcept {
    const Lease<MemoryResource> lease(*this);
    if (!lease) return Reason::closed;
    if (const Status status = context_->usable(); !status.ok()) return status;
    if (is_cached()) {
        if (const Status status = empty_cache(bytes_to_keep); !status.ok()) return status;
    }
    if (staging_) {
        const ContextScope scope(*context_);
        return scope.status().ok() ? staging_->trim(bytes_to_keep) : scope.status();
    }
    if (!is_pool()) return {};  // plain memory keeps nothing back
    const RelaxedCapture relaxed;
    return context_->observe(cu.cuMemPoolTrimTo(cu_pool_, bytes_to_keep));
}

Status MemoryResource::allocate(std::size_t bytes, Stream* stream, Allocation& allocation) {
    if (staging_) {
        StagingStore::Piece piece;
        const Status status = staging_->acquire(bytes, piece);
        if (status.ok()) allocation = {piece.pointer, false, 0, piece.bytes};
        return status;
    }
    if (!is_cached() || !Cache::fits(bytes)) return allocate_upstream(bytes, stream, allocation.pointer);
    if (kind_ == MemoryKind::device) {
        // Nothing is kept of default streams, which order no frees, of others' streams, whose handles may be gone when
        // the cache wants to free, and of captures: what a graph uses it uses again.
        bool passes_by = stream == nullptr || !stream->is_owned();
        if (!passes_by) {
            if (const Status status = stream->is_capturing(passes_by); !status.ok()) return status;
        }
        if (passes_by) return allocate_upstream(bytes, stream, allocation.pointer);
    }
    std::uint64_t made_in = Cache::id_of(key(stream));
    Cache::Piece piece;
    bool found = cache_->acquire(bytes, key(stream), piece);
    if (!found && kind_ == MemoryKind::device && !is_pool()) {
        found = cache_->acquire(bytes, nullptr, piece);
        if (found) made_in = Cache::id_of(nullptr);
    }
    if (found) {
        if (piece.event != nullptr) context_->release_event(piece.event);
        driver::memory_marking::mark_in_use(piece.pointer, kind_ == MemoryKind::device ? stream->cu_stream() : nullptr,
                                            bytes);
        allocation = {piece.pointer, true, made_in};
        return {};
    }
    const Status status = allocate_upstream(Cache::rounded(bytes), stream, allocation.pointer);
    if (!status.ok()) return status;
    driver::memory_marking::mark_in_use(allocation.pointer, nullptr, bytes);
    allocation.cacheable = true;
    allocation.made_in = made_in;
    std::vector<Cache::Leaving> leaving;
    cache_->count_made(bytes, made_in, leaving);
    if (!leaving.empty()) deferred_errors::add(let_go(leaving), "free", "cached memory");
    return {};
}

Status MemoryResource::allocate_upstream(std::size_t bytes, Stream* stream, CUdeviceptr& pointer) noexcept {
    const RelaxedCapture relaxed;
    if (is_pool()) return allocate_from_pool(bytes, *stream, pointer);
    switch (kind_) {
    case MemoryKind::device: return context_->observe(cu.cuMemAlloc_v2(&pointer, bytes));
    case MemoryKind::managed: return context_->observe(cu.cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL));
    case MemoryKind::pinned: break;
    }
    void* host = nullptr;
    const Status status = context_->observe(cu.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE));
    pointer = reinterpret_cast<std::uintptr_t>(host);  // unified addressing: one address for host and device
    return status;
}

Status MemoryResource::allocate_from_pool(std::size_t bytes, Stream& stream, CUdeviceptr& pointer) noexcept {
    const Status status = context_->observe(cu.cuMemAllocFromPoolAsync(&pointer, bytes, cu_pool_, stream.cu_stream()));
    if (!status.ok() || stream.session() != nullptr || !stream.may_be_captured()) return status;
    bool capturing = false;
    if (const Status asked = stream.is_capturing(capturing); !asked.ok() || !capturing) return asked;
    // Others have begun a capture: it is their graph's, which frees it again.
    const Status freed = context_->observe(cu.cuMemFreeAsync(pointer, stream.cu_stream()));
    return freed.ok() ? Status(Reason::capturing) : freed;
}

Status MemoryResource::free_ordered(const Allocation& allocation, std::size_t bytes, Stream* home, CUstream stream,
                                    bool used) {
    if (!allocation.cacheable && !staging_) return free_or_retire(allocation.pointer, home, stream);
    // Plain memory whose last use is ordered in a stream of ours is kept by an event: the host would wait otherwise.
    const bool is_by_event = kind_ != MemoryKind::device || (home == nullptr && !is_pool());
    if (!is_by_event && (home == nullptr || !home->is_owned())) {
        cache_->count_freed(bytes, allocation.made_in);
        return free_or_retire(allocation.pointer, home, stream);
    }
    Cache::Piece piece{allocation.pointer, nullptr};
    driver::memory_marking::mark_free(piece.pointer, kind_ == MemoryKind::device || used ? stream : nullptr);
    if (is_by_event && used) {
        // Who gets it may touch it at once, as the host does: it must be known when the work is done.
        const Status status = home != nullptr ? home->mark_surely(piece.event) : context_->record(stream, piece.event);
        if (!status.ok()) {
            free_later(allocation, bytes);
            return status.reason() == Reason::capturing ? Status() : status;
        }
    }
    if (staging_) {
        staging_->release({piece.pointer, allocation.leased, piece.event});
        return {};
    }
    std::vector<Cache::Leaving> leaving;
    cache_->release(bytes, allocation.made_in, key(home), piece, leaving);
    if (!leaving.empty()) deferred_errors::add(let_go(leaving), "free", "cached memory");
    return {};
}

void MemoryResource::free_later(const Allocation& allocation, std::size_t bytes) {
    if (allocation.cacheable) cache_->count_freed(bytes, allocation.made_in);
    if (staging_) {
        retire(*context_, [resource = Ref<MemoryResource>(*this), allocation] {
            driver::memory_marking::mark_free(allocation.pointer, nullptr);
            resource->staging_->release({allocation.pointer, allocation.leased, nullptr});
        });
        return;
    }
    retire(*context_, [resource = Ref<MemoryResource>(*this), pointer = allocation.pointer] {
        driver::memory_marking::mark_in_use(pointer, nullptr);
        deferred_errors::add(resource->free_idle(pointer), "free", "buffer");
    });
}

Status MemoryResource::free_upstream(CUdeviceptr pointer, Stream* home, CUstream stream) noexcept {
    const RelaxedCapture relaxed;
    if (!is_pool()) {
        const Status status =
            home != nullptr ? home->wait_until_idle() : context_->observe(cu.cuStreamSynchronize(stream));
        return status.ok() ? free_now(pointer) : status;
    }
    bool capturing = false;
    if (home != nullptr) {
        if (const Status status = home->is_capturing(capturing); !status.ok()) return status;
        if (capturing) return Reason::capturing;
    }
    const Status status = context_->observe(cu.cuMemFreeAsync(pointer, stream));
    // A capture that others have begun meanwhile takes nothing that is not its graph's, and goes on (driver 580).
    const bool is_refused = status.is(CUDA_ERROR_INVALID_VALUE) && home != nullptr && home->may_be_captured();
    return is_refused ? Status(Reason::capturing) : status;
}

Status MemoryResource::free_or_retire(CUdeviceptr pointer, Stream* home, CUstream stream) {
    const Status status = free_upstream(pointer, home, stream);
    if (!status.ok() && status.entry() != Entry::cuMemFreeAsync) free_later({pointer}, 0);
    return status.reason() == Reason::capturing ? Status() : status;
}

Status MemoryResource::empty_cache(std::size_t bytes_to_keep) {
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    std::vector<Cache::Leaving> leaving;
    cache_->empty(bytes_to_keep, leaving);
    return let_go(leaving);
}

void MemoryResource::trim_caches(Context& context, bool& found) {
    std::vector<Ref<MemoryResource>> all;
    {
        const Lock lock(caches().mutex);
        for (MemoryResource* const each : caches().all) {
            if (each->context_ == &context) all.emplace_back(*each);
        }
    }
    for (const Ref<MemoryResource>& each : all) {
        found = found || each->cache_figures().cached_count != 0;
        each->trim(0).ignore();  // refused to a closed one, and in a broken context
    }
}

Status MemoryResource::let_go(std::vector<Cache::Leaving>& leaving) {
    const RelaxedCapture relaxed;
    Status first;
    for (Cache::Leaving& each : leaving) {
        Stream* const home = each.stream.get();
        CUstream stream = nullptr;
        Status status;
        if (home != nullptr) stream = home->cu_stream();
        else status = context_->housekeeping_stream(stream);
        if (status.ok() && each.piece.event != nullptr)  // in a stream of ours
            status = context_->observe(cu.cuStreamWaitEvent(stream, each.piece.event, 0));
        if (each.piece.event != nullptr) context_->release_event(each.piece.event);
        if (status.ok()) {
            driver::memory_marking::mark_in_use(each.piece.pointer, stream);
            status = free_upstream(each.piece.pointer, home, stream);
        }
        if (!status.ok()) upstream_->free_later({each.piece.pointer}, 0);
        if (first.ok() && status.reason() != Reason::capturing) first = status;
    }
    return first;
}

Status MemoryResource::free_now(CUdeviceptr pointer) noexcept {
    const RelaxedCapture relaxed;
    if (kind_ == MemoryKind::pinned) {
        return context_->observe(cu.cuMemFreeHost(reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer))));
    }
    return context_->observe(cu.cuMemFree_v2(pointer));
}

Status MemoryResource::free_idle(CUdeviceptr pointer) noexcept {
    if (!is_pool()) return free_now(pointer);
    CUstream stream = nullptr;
    if (!context_->housekeeping_stream(stream).ok()) return free_now(pointer);  // in no stream's order: nothing runs
    const RelaxedCapture relaxed;
    return context_->observe(cu.cuMemFreeAsync(pointer, stream));
}

void MemoryResource::destroy() noexcept {
    if (is_forked()) return;
    if (deferred_release::put_off([self = Ref<MemoryResource>(*this)] { self->destroy(); })) return;
    if (is_cached()) {
        {
            const Lock lock(caches().mutex);
            caches().all.erase(std::find(caches().all.begin(), caches().all.end(), this));
        }
        if (context_->may_destroy()) deferred_errors::add(empty_cache(0), "empty", "cache");
        upstream_->leave();
        return;
    }
    if (staging_ && context_->may_destroy()) {
        const ContextScope scope(*context_);
        deferred_errors::add(scope.status().ok() ? staging_->close() : scope.status(), "free", "staging memory");
    }
    if (!owned_ || !context_->may_destroy()) return;
    // Not at once: with the free of its last buffer still queued, destroying a pool of host memory hung the stream for
    // ever (driver 580, four threads with a pool each on one stream).
    retire(*context_, [context = context_, pool = cu_pool_] {
        deferred_errors::add(context->observe(cu.cuMemPoolDestroy(pool)), "destroy", "memory pool");
    });
}

}  // namespace ftcuda::core
