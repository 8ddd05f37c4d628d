// What the simulator asks of the operating system: address space, and pages in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ftcuda::sim::pages {

constexpr std::uint64_t size = 4096;

// Addresses that nobody can touch, and bytes in their stead that the simulator can, once they are provided.
struct Twins {
    std::uint64_t addresses = 0;  // zero: there is no room
    std::byte* bytes = nullptr;
};

Twins reserve(std::uint64_t length) noexcept;

// Makes bytes of a reservation usable. False: there is not enough memory.
bool provide(std::byte* bytes, std::uint64_t length) noexcept;

// Gives whole pages of provided bytes back to the system.
void drop(std::byte* bytes, std::uint64_t length) noexcept;

// Host memory, zeroed; null when there is none.
std::byte* map(std::uint64_t length) noexcept;
void unmap(std::byte* bytes, std::uint64_t length) noexcept;

// Whether all of [begin, begin + length) is memory that the program may read and write.
bool usable(std::uint64_t begin, std::uint64_t length) noexcept;

}  // namespace ftcuda::sim::pages
