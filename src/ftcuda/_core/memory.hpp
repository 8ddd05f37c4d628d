// Memory resources: where buffers come from and how they go back.
//
// Two ways exist. Stream-ordered: from a pool, by cuMemAllocFromPoolAsync, freed in a stream's order. Plain: by
// cuMemAlloc, cuMemHostAlloc or cuMemAllocManaged, freed after the streams that used the memory were waited for; the way of
// devices and drivers without pools (Windows TCC, drivers before 11.2), behind the same Buffer.
#pragma once

#include "context.hpp"
#include "lifetime.hpp"

namespace ftcuda::core {

class Stream;

enum class MemoryKind : unsigned char { device, pinned, managed };

class MemoryResource final : public Shared {
public:
    // The device's default pool, which nobody owns.
    static Status default_pool(Context& context, Ref<MemoryResource>& resource);
    // A pool of its own. `limit` bytes at most, 0 for no limit (drivers before 12.2 ignore it).
    static Status make_pool(Context& context, MemoryKind kind, std::size_t limit, Ref<MemoryResource>& resource);
    // Plain allocations.
    static Ref<MemoryResource> plain(Context& context, MemoryKind kind);

    Context& context() const noexcept { return *context_; }
    MemoryKind kind() const noexcept { return kind_; }
    bool is_pool() const noexcept { return cu_pool_ != nullptr; }
    bool is_owned() const noexcept { return owned_; }
    abi::CUmemoryPool cu_pool() const noexcept { return cu_pool_; }

    // No more allocations; a pool of its own is destroyed at the first synchronisation of the context after its last buffer
    // is gone.
    void close() noexcept {
        if (lifetime_.close()) destroy();
    }
    bool is_closed() const noexcept { return lifetime_.is_closing(); }
    bool enter() noexcept { return lifetime_.enter() == 0; }
    void leave() noexcept {
        if (Lifetime::last(lifetime_.leave())) destroy();
    }

    Status get_attribute(int attribute, std::uint64_t& value) noexcept;
    Status set_attribute(int attribute, std::uint64_t value) noexcept;
    Status trim(std::size_t bytes_to_keep) noexcept;

private:
    friend class Buffer;  // allocate and free in the order that a buffer's uses demand

    MemoryResource(Context& context, MemoryKind kind, abi::CUmemoryPool cu_pool, bool owned) noexcept
        : context_(&context), kind_(kind), cu_pool_(cu_pool), owned_(owned) {}
    ~MemoryResource() override = default;

    // With the context current, inside a lease. `stream` orders pool allocations; plain ones ignore it.
    Status allocate(std::size_t bytes, abi::CUstream stream, abi::CUdeviceptr& pointer) noexcept;
    Status free_ordered(abi::CUdeviceptr pointer, abi::CUstream stream) noexcept;
    Status free_now(abi::CUdeviceptr pointer) noexcept;
    Status free_idle(abi::CUdeviceptr pointer) noexcept;  // of either kind, while nothing runs
    void destroy() noexcept;

    // Constant after construction.
    Context* const context_;
    const MemoryKind kind_;
    const abi::CUmemoryPool cu_pool_;
    const bool owned_;

    // Synchronises itself.
    Lifetime lifetime_;
};

}  // namespace ftcuda::core
