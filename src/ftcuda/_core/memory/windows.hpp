// Windows: buffers in memory that somebody else gives back, an owner or a resource written in Python. A window stands
// in the memory of every buffer that was there before it and has the window's first byte. A buffer that ends keeps its
// memory until the windows in it that are closed have let go of what holds theirs, which is when their work is done;
// one that the garbage collector ends, also while windows in it are open: whatever refers to what in Python, and in
// whatever order the collector ends it. Windows that are still open when the collection is over were no garbage.
#pragma once

#include "../../_driver/abi.hpp"
#include "../sync/sharded_lifetime.hpp"

#include <atomic>
#include <cstdint>

namespace ftcuda::core::windows {

// The number of the window that was opened last. Relaxed: whoever ends a buffer comes after those who opened windows in
// it, by the buffer's own word or by what the program does. A window that is opened meanwhile counts or not.
extern std::atomic<std::uint64_t> latest_number;
inline std::uint64_t latest() noexcept { return latest_number.load(std::memory_order_relaxed); }

// Opens a window that begins at `address`: its number. `lifetime` says whether its buffer is closed, until close().
std::uint64_t open(abi::CUdeviceptr address, const ShardedLifetime& lifetime);

// A buffer that waits: what it is made of derives from this.
struct Waiter {
    Waiter* next = nullptr;
};

// The memory from `begin` to before `end`, and the numbers of the windows that may stand in it: from `after`, without
// that one, to `until`.
struct Range {
    abi::CUdeviceptr begin, end;
    std::uint64_t after, until;
    bool only_closed;  // those whose buffer is closed
};

// If a window stands in `range`: true, and `waiter` is among those that its close() returns. Whoever gets it there asks
// again, as others may stand there too.
bool wait(Waiter& waiter, const Range& range) noexcept;

// Closes the window, if it is open: a list of those who wait for it.
Waiter* close(abi::CUdeviceptr address, std::uint64_t number) noexcept;

// All who wait for a window whose buffer is not closed.
Waiter* take_from_open() noexcept;

}  // namespace ftcuda::core::windows
