#include "windows.hpp"

#include "../sync/fork.hpp"
#include "../sync/mutex.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>

namespace ftcuda::core::windows {

using abi::CUdeviceptr;

namespace {

struct Place {
    CUdeviceptr address;
    std::uint64_t number;

    bool operator<(const Place& other) const noexcept {
        return std::tie(address, number) < std::tie(other.address, other.number);
    }
};

struct Window {
    const ShardedLifetime* lifetime;
    Waiter* waiting;
};

struct alignas(64) Shard {
    Mutex mutex{Rank::windows};
    std::map<Place, Window> open GUARDED_BY(mutex);  // each with those who wait for it
};

// Threads that work in memory of their own seldom meet: a shard has some of the memory, in pieces of 2 MiB.
constexpr unsigned piece_bits = 21;
using Shards = std::array<Shard, 64>;

Shards& shards = *new Shards;  // never destroyed: daemon threads outlive main()

Shard& shard_of(CUdeviceptr piece) noexcept { return shards[piece % std::tuple_size<Shards>::value]; }

// How many wait. Relaxed: whoever asks has made them wait itself.
std::atomic<std::size_t> waiting_number{0};

// The first window in `range`; the end if there is none.
template <class Open>
typename Open::iterator find(Open& open, const Range& range) noexcept {
    auto found = open.lower_bound({range.begin, range.after + 1});
    while (found != open.end() && found->first.address < range.end) {
        const Place& place = found->first;
        const bool counts = !range.only_closed || found->second.lifetime->is_closing();
        if (counts && place.number > range.after && place.number <= range.until) return found;
        const bool too_old = place.number <= range.after;
        found = too_old ? open.lower_bound({place.address, range.after + 1}) : std::next(found);
    }
    return open.end();
}

}  // namespace

std::atomic<std::uint64_t> latest_number{0};

std::uint64_t open(CUdeviceptr address, const ShardedLifetime& lifetime) {
    Shard& shard = shard_of(address >> piece_bits);
    const Lock lock(shard.mutex);
    const std::uint64_t number = latest_number.fetch_add(1, std::memory_order_relaxed) + 1;
    shard.open.emplace(Place{address, number}, Window{&lifetime, nullptr});
    return number;
}

bool wait(Waiter& waiter, const Range& range) noexcept {
    if (is_forked()) return false;
    const CUdeviceptr first = range.begin >> piece_bits;
    const CUdeviceptr last = (range.end - 1) >> piece_bits;
    const CUdeviceptr count = std::min<CUdeviceptr>(last - first + 1, shards.size());
    for (CUdeviceptr piece = first; piece != first + count; ++piece) {
        Shard& shard = shard_of(piece);
        const Lock lock(shard.mutex);
        const auto found = find(shard.open, range);
        if (found == shard.open.end()) continue;
        waiter.next = found->second.waiting;
        found->second.waiting = &waiter;
        waiting_number.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    return false;
}

Waiter* close(CUdeviceptr address, std::uint64_t number) noexcept {
    if (is_forked()) return nullptr;
    Shard& shard = shard_of(address >> piece_bits);
    const Lock lock(shard.mutex);
    const auto found = shard.open.find({address, number});
    if (found == shard.open.end()) return nullptr;
    Waiter* const waiting = found->second.waiting;
    shard.open.erase(found);
    for (Waiter* each = waiting; each != nullptr; each = each->next) {
        waiting_number.fetch_sub(1, std::memory_order_relaxed);
    }
    return waiting;
}

Waiter* take_from_open() noexcept {
    if (is_forked() || waiting_number.load(std::memory_order_relaxed) == 0) return nullptr;
    Waiter* all = nullptr;
    for (Shard& shard : shards) {
        const Lock lock(shard.mutex);
        for (auto& [place, window] : shard.open) {
            if (window.waiting == nullptr || window.lifetime->is_closing()) continue;
            while (Waiter* const waiter = window.waiting) {
                window.waiting = waiter->next;
                waiter->next = all;
                all = waiter;
                waiting_number.fetch_sub(1, std::memory_order_relaxed);
            }
        }
    }
    return all;
}

}  // namespace ftcuda::core::windows
