// Which allocation an address lies in. Under the lock.
#pragma once

#include "driver_state.hpp"

namespace ftcuda::sim {

// Whether [offset, offset + size) lies in the first `limit` bytes.
inline bool holds(std::uint64_t offset, std::uint64_t size, std::uint64_t limit) noexcept {
    return offset < limit && size <= limit - offset;
}

// The live allocation with this address in it, else null.
Allocation* allocation_at(std::uint64_t address);
// The same if it holds all of [address, address + size), and has it in use.
Allocation* find_allocation(std::uint64_t address, std::uint64_t size);

}  // namespace ftcuda::sim
