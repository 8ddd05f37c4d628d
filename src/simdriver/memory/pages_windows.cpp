#include "pages.hpp"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

namespace ftcuda::sim::pages {

Twins reserve(std::uint64_t length) noexcept {
    void* const addresses = VirtualAlloc(nullptr, length, MEM_RESERVE, PAGE_NOACCESS);
    void* const bytes = VirtualAlloc(nullptr, length, MEM_RESERVE, PAGE_READWRITE);
    if (addresses == nullptr || bytes == nullptr) return {};
    return {reinterpret_cast<std::uintptr_t>(addresses), static_cast<std::byte*>(bytes)};
}

bool provide(std::byte* bytes, std::uint64_t length) noexcept {
    return VirtualAlloc(bytes, length, MEM_COMMIT, PAGE_READWRITE) != nullptr;  // all pages that hold a byte of it
}

void drop(std::byte* bytes, std::uint64_t length) noexcept { VirtualFree(bytes, length, MEM_DECOMMIT); }

std::byte* map(std::uint64_t length) noexcept {
    return static_cast<std::byte*>(VirtualAlloc(nullptr, length, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void unmap(std::byte* bytes, std::uint64_t) noexcept { VirtualFree(bytes, 0, MEM_RELEASE); }

bool usable(std::uint64_t begin, std::uint64_t length) noexcept {
    for (std::uint64_t at = begin; at < begin + length;) {
        MEMORY_BASIC_INFORMATION region;
        if (VirtualQuery(reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), &region, sizeof region) == 0)
            return false;
        if (region.State != MEM_COMMIT ||
            (region.Protect & (PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE)) == 0)
            return false;
        at = reinterpret_cast<std::uintptr_t>(region.BaseAddress) + region.RegionSize;
    }
    return true;
}

}  // namespace ftcuda::sim::pages
