// Memory resources: where buffers come from and how they go back.
//
// Two ways exist, and two around them. Stream-ordered: from a pool, by cuMemAllocFromPoolAsync, freed in a stream's
// order. Plain: by cuMemAlloc, cuMemHostAlloc or cuMemAllocManaged, freed after the streams that used the memory were
// waited for; the way of devices and drivers without pools (Windows TCC, drivers before 11.2), behind the same Buffer.
// Caching: what was freed in a stream's order is given out in the same order again (cache.hpp), and other resources are
// asked only for the rest. Staging: pinned memory of a bounded size, which is given out again when the work that used
// it is done (staging_store.hpp).
#pragma once

#include "../device/context.hpp"
#include "../sync/cache_line.hpp"
#include "../sync/sharded_lifetime.hpp"
#include "cache.hpp"
#include "staging_store.hpp"

namespace ftcuda::core {

enum class MemoryKind : unsigned char { device, pinned, managed };

class MemoryResource final : public Shared {
public:
    // The device's default pool, which nobody owns.
    static Status default_pool(Context& context, Ref<MemoryResource>& resource);
    // What graphs allocate, with the properties of the device's default pool: only graph builders order that.
    static Status for_graphs(Context& context, Ref<MemoryResource>& resource);
    // A pool of its own. `limit` bytes at most, 0 for no limit (drivers before 12.2 ignore it).
    static Status make_pool(Context& context, MemoryKind kind, std::size_t limit, Ref<MemoryResource>& resource);
    // Plain allocations.
    static Ref<MemoryResource> plain(Context& context, MemoryKind kind);
    // A cache in front of `upstream`, of `limit` bytes for each stream.
    static Status cached(MemoryResource& upstream, std::size_t limit, Ref<MemoryResource>& resource);

    // Pinned memory, `bytes` at most, of which a buffer is a lease.
    static Ref<MemoryResource> staging(Context& context, std::size_t bytes);

    Context& context() const noexcept { return *context_; }
    MemoryKind kind() const noexcept { return kind_; }
    bool is_pool() const noexcept { return cu_pool_ != nullptr; }
    bool is_owned() const noexcept { return owned_; }
    bool is_for_graphs() const noexcept { return is_for_graphs_; }
    abi::CUmemoryPool cu_pool() const noexcept { return cu_pool_; }

    // No more allocations; a pool of its own is destroyed at the first synchronisation of the context after its last
    // buffer is gone.
    void close() noexcept {
        if (!is_kept_ && lifetime_.close()) destroy();
    }
    bool is_closed() const noexcept { return lifetime_.is_closing(); }
    bool enter() noexcept {
        const Entrance entrance = lifetime_.enter();
        if (entrance == Entrance::last) destroy();
        return entrance == Entrance::inside;
    }
    void leave() noexcept {
        if (lifetime_.leave()) destroy();
    }

    // It lives, and is open, as long as the process: close() does nothing, and references to it, which each buffer
    // holds, are not counted from now on. Before other threads see it.
    void keep_forever() noexcept { is_kept_ = true; }
    void retain() noexcept {
        if (!is_kept_) Shared::retain();
    }
    void release() noexcept {
        if (!is_kept_) Shared::release();
    }

    // By who has a lease. The device's default pool needs none: nobody destroys it.
    Status get_attribute(int attribute, std::uint64_t& value) noexcept;
    Status set_attribute(int attribute, std::uint64_t value) noexcept;
    Status trim(std::size_t bytes_to_keep) noexcept;

    // Trims all open caches of a context, and the pools behind them, for whoever finds no memory. `found` becomes true
    // if there was memory in a cache.
    static void trim_caches(Context& context, bool& found);
    bool is_cached() const noexcept { return cache_ != nullptr; }
    Cache::Figures cache_figures() { return cache_->figures(); }
    StagingStore* staging_store() const noexcept { return staging_.get(); }  // null for other resources

private:
    friend class Buffer;  // allocate and free in the order that a buffer's uses demand

    MemoryResource(Context& context, MemoryKind kind, abi::CUmemoryPool cu_pool, bool owned) noexcept
        : context_(&context), kind_(kind), cu_pool_(cu_pool), owned_(owned) {}
    ~MemoryResource() override = default;

    // Memory; whether a cache may keep it when it is freed, and the id of the stream that the cache counts it for.
    struct Allocation {
        abi::CUdeviceptr pointer = 0;
        bool cacheable = false;
        std::uint64_t made_in = 0;
        std::size_t leased = 0;  // bytes of a staging store's piece
    };

    // With the context current, inside a lease. `stream` orders allocations of pools and caches; plain ones ignore it.
    Status allocate(std::size_t bytes, Stream* stream, Allocation& allocation);
    // Whether a free is in the order of a stream: of `home`, null where that is a stream of nobody's, which is
    // `stream`.
    bool is_ordered() const noexcept { return is_pool() || is_cached() || staging_; }
    Status free_ordered(const Allocation& allocation, std::size_t bytes, Stream* home, abi::CUstream stream, bool used);
    Status free_now(abi::CUdeviceptr pointer) noexcept;
    // When nothing runs: late, but neither lost nor under running work.
    void free_later(const Allocation& allocation, std::size_t bytes);
    Status free_idle(abi::CUdeviceptr pointer) noexcept;  // of either kind, while nothing runs
    void destroy() noexcept;
    Status allocate_upstream(std::size_t bytes, Stream* stream, abi::CUdeviceptr& pointer) noexcept;
    Status allocate_from_pool(std::size_t bytes, Stream& stream, abi::CUdeviceptr& pointer) noexcept;
    // In the order of `stream`, as free_ordered(); `capturing` if others capture it.
    Status free_upstream(abi::CUdeviceptr pointer, Stream* home, abi::CUstream stream) noexcept;
    // The same; memory whose stream could not be waited for, or is captured, is freed when nothing runs.
    Status free_or_retire(abi::CUdeviceptr pointer, Stream* home, abi::CUstream stream);
    // What a caching resource has in store goes back in its streams' orders, until at most `bytes_to_keep` are left.
    Status empty_cache(std::size_t bytes_to_keep);
    Status let_go(std::vector<Cache::Leaving>& leaving);
    Stream* key(Stream* stream) const noexcept { return kind_ == MemoryKind::device ? stream : nullptr; }

    // Constant after construction.
    Context* const context_;
    const MemoryKind kind_;
    const abi::CUmemoryPool cu_pool_;
    const bool owned_;
    Ref<MemoryResource> upstream_;  // with a lease; null unless this is a cache
    std::unique_ptr<Cache> cache_;
    std::unique_ptr<StagingStore> staging_;
    bool is_kept_ = false;
    bool is_for_graphs_ = false;

    // Synchronises itself. On a line of its own: every allocation and free writes it, unless it is spread.
    [[maybe_unused]] LineBetween before_lifetime_;
    ShardedLifetime lifetime_;
    [[maybe_unused]] LineBetween after_lifetime_;
};

}  // namespace ftcuda::core
