#include "memory.hpp"

#include "../checkers/early_free.hpp"
#include "../checkers/late_use.hpp"
#include "../state/allocations.hpp"
#include "../state/profile.hpp"
#include "pages.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim {

namespace {

constexpr std::uint64_t granularity = 512;     // as cuMemAlloc aligns
constexpr std::uint64_t filled = 16 << 20;     // garbage is written to this much of an allocation
constexpr std::uint64_t resident = 256 << 10;  // the pages of larger ones go back to the system when they are freed
constexpr int fresh = 0xa5;
constexpr int freed = 0xdd;

// One device's memory. The addresses handed out cannot be touched, so that host code which dereferences one faults;
// their bytes lie elsewhere.
class Arena {
public:
    explicit Arena(std::uint64_t size) {
        const pages::Twins twins = pages::reserve(size);
        if (twins.addresses == 0) return;
        base_ = twins.addresses;
        bytes_ = twins.bytes;
        free_.emplace(base_, size);
    }

    // First fit. 0 when nothing is large enough.
    std::uint64_t acquire(std::uint64_t size) {
        for (auto range = free_.begin(); range != free_.end(); ++range) {
            if (range->second < size) continue;
            const std::uint64_t begin = range->first;
            const std::uint64_t rest = range->second - size;
            if (!pages::provide(bytes(begin), size)) return 0;
            free_.erase(range);
            if (rest != 0) free_.emplace(begin + size, rest);
            return begin;
        }
        return 0;
    }

    void release(std::uint64_t begin, std::uint64_t size) {
        auto next = free_.lower_bound(begin);
        if (next != free_.end() && begin + size == next->first) {
            size += next->second;
            next = free_.erase(next);
        }
        if (next != free_.begin()) {
            const auto previous = std::prev(next);
            if (previous->first + previous->second == begin) {
                previous->second += size;
                return;
            }
        }
        free_.emplace(begin, size);
    }

    std::byte* bytes(std::uint64_t begin) const noexcept { return bytes_ + (begin - base_); }

    // Gives the whole pages of a range back to the system.
    void drop(std::uint64_t begin, std::uint64_t size) const noexcept {
        const std::uint64_t first =
            (begin + pages::size - 1) / pages::size * pages::size;  // the base is a page's begin too
        const std::uint64_t last = (begin + size) / pages::size * pages::size;
        if (first < last) pages::drop(bytes(first), last - first);
    }

private:
    std::uint64_t base_ = 0;
    std::byte* bytes_ = nullptr;
    std::map<std::uint64_t, std::uint64_t> free_;  // begin -> size
};

Arena& arena(int device) {
    static std::vector<std::unique_ptr<Arena>>& arenas =
        *new std::vector<std::unique_ptr<Arena>>(static_cast<std::size_t>(device_count()));
    std::unique_ptr<Arena>& mine = arenas[static_cast<std::size_t>(device)];
    if (!mine) mine = std::make_unique<Arena>(device_memory());
    return *mine;
}

std::uint64_t rounded(std::uint64_t size) noexcept { return (size + granularity - 1) / granularity * granularity; }

// What kernels see: the live allocations. Called by interpreting threads, which do not hold the lock.
class KernelMemory final : public ptx::Memory {
public:
    bool find(std::uint64_t address, std::size_t size, ptx::Extent& extent) override {
        const Guard lock(driver_state().mutex);
        const Allocation* const allocation = allocation_at(address);
        if (allocation == nullptr || !holds(address - allocation->begin, size, allocation->reachable)) return false;
        extent = {allocation->begin, allocation->begin + allocation->reachable, allocation->bytes};
        return true;
    }

    std::uint64_t generation() const noexcept override { return generation_.load(std::memory_order_acquire); }
    void advance() noexcept { generation_.fetch_add(1, std::memory_order_acq_rel); }

private:
    std::atomic<std::uint64_t> generation_{0};
};

KernelMemory& memory() noexcept {
    static KernelMemory& only = *new KernelMemory;
    return only;
}

}  // namespace

ptx::Memory& kernel_memory() noexcept { return memory(); }

bool count_used(int device, std::uint64_t bytes) {
    const std::uint64_t limit = driver_state().memory_limits[static_cast<std::size_t>(device)];
    std::uint64_t& used = driver_state().memory_used[static_cast<std::size_t>(device)];
    if (used + bytes > (limit != 0 ? limit : device_memory())) return false;
    used += bytes;
    return true;
}

void count_unused(int device, std::uint64_t bytes) {
    driver_state().memory_used[static_cast<std::size_t>(device)] -= bytes;
}

CUresult allocate(int device, Kind kind, std::uint64_t size, std::shared_ptr<Pool> pool, std::uint64_t& begin) {
    DriverState& state = driver_state();
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > device_memory()) return CUDA_ERROR_OUT_OF_MEMORY;
    Allocation allocation;
    allocation.size = allocation.in_use = allocation.reachable = size;
    allocation.kind = kind;
    allocation.device = device;
    if (kind == Kind::device) {
        if (pool && pool->limit != 0 && pool->used + size > pool->limit) return CUDA_ERROR_OUT_OF_MEMORY;
        if (!count_used(device, rounded(size))) return CUDA_ERROR_OUT_OF_MEMORY;
        allocation.begin = arena(device).acquire(rounded(size));
        if (allocation.begin == 0) {
            count_unused(device, rounded(size));
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        allocation.bytes = arena(device).bytes(allocation.begin);
    } else {
        allocation.bytes = pages::map(size);
        if (allocation.bytes == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        allocation.begin = reinterpret_cast<std::uintptr_t>(allocation.bytes);
    }
    std::memset(allocation.bytes, fresh, std::min(size, filled));
    if (pool) {
        pool->used += size;
        pool->used_high = std::max(pool->used_high, pool->used);
        pool->reserved = std::max(pool->reserved, pool->used);
        pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
    }
    allocation.pool = std::move(pool);
    allocation.id = state.next_allocation_id++;
    begin = allocation.begin;
    state.allocations.emplace(begin, std::move(allocation));
    return CUDA_SUCCESS;
}

CUresult reserve(int device, std::uint64_t size, std::uint64_t& begin) {
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > device_memory()) return CUDA_ERROR_OUT_OF_MEMORY;
    Allocation allocation;
    allocation.begin = begin = arena(device).acquire(rounded(size));
    if (begin == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    allocation.size = allocation.in_use = size;
    allocation.device = device;
    allocation.bytes = arena(device).bytes(begin);
    allocation.id = driver_state().next_allocation_id++;
    allocation.of_graph.emplace();
    driver_state().allocations.emplace(begin, std::move(allocation));
    return CUDA_SUCCESS;
}

void release(Allocation& allocation) {
    DriverState& state = driver_state();
    early_free::check(allocation);
    if (allocation.pool) allocation.pool->used -= allocation.size;
    if (allocation.kind == Kind::device) {
        if (allocation.size <= resident) {
            std::memset(allocation.bytes, freed, allocation.size);
        } else {
            arena(allocation.device).drop(allocation.begin, allocation.size);
        }
        arena(allocation.device).release(allocation.begin, rounded(allocation.size));
        if (!allocation.of_graph) count_unused(allocation.device, rounded(allocation.size));
    } else if (allocation.kind != Kind::registered) {
        pages::unmap(allocation.bytes, allocation.size);
    }
    state.allocations.erase(allocation.begin);
    memory().advance();
}

void set_reachable(std::uint64_t begin, std::uint64_t bytes) {
    const auto found = driver_state().allocations.find(begin);
    if (found == driver_state().allocations.end()) return;
    Allocation& allocation = found->second;
    allocation.reachable = bytes;
    std::memset(allocation.bytes, bytes == 0 ? freed : fresh, std::min(allocation.size, filled));
    memory().advance();
}

void begin_touch(std::uint64_t address, std::vector<std::uint64_t>& touches) {
    Allocation* const allocation = find_allocation(address, 1);
    if (allocation == nullptr) return;
    late_use::check(*allocation);
    early_free::begin(*allocation, touches);
}

}  // namespace ftcuda::sim
