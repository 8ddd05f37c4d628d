// Device memory: addresses that the host cannot touch, backed by pages that the simulator can. Everything is called
// under the lock but what says otherwise.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

CUresult allocate(int device, Kind kind, std::uint64_t size, std::shared_ptr<Pool> pool, std::uint64_t& begin);
void release(Allocation& allocation);
// An address without memory behind it, for a graph.
CUresult reserve(int device, std::uint64_t size, std::uint64_t& begin);

// So much of a device's memory is taken, if there is as much.
bool count_used(int device, std::uint64_t bytes);
void count_unused(int device, std::uint64_t bytes);

// So much of an allocation may be touched from here on, and its bytes are garbage.
void set_reachable(std::uint64_t begin, std::uint64_t bytes);

// Work that is about to be submitted uses what is at `address`; `touches` goes into the work.
void begin_touch(std::uint64_t address, std::vector<std::uint64_t>& touches);

// What kernels see; without the lock.
ptx::Memory& kernel_memory() noexcept;

}  // namespace ftcuda::sim
