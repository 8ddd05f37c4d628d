#include "pages.hpp"

#include <cstdio>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ftcuda::sim::pages {

namespace {

std::uint64_t whole(std::uint64_t length) noexcept { return (length + size - 1) / size * size; }

}  // namespace

Twins reserve(std::uint64_t length) noexcept {
    const int file = memfd_create("ftcuda-simulated-device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(length)) != 0) return {};
    void* const addresses = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* const bytes = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (addresses == MAP_FAILED || bytes == MAP_FAILED) return {};
    return {reinterpret_cast<std::uintptr_t>(addresses), static_cast<std::byte*>(bytes)};
}

bool provide(std::byte*, std::uint64_t) noexcept {
    return true;  // pages come as they are touched
}

void drop(std::byte* bytes, std::uint64_t length) noexcept { madvise(bytes, length, MADV_REMOVE); }

std::byte* map(std::uint64_t length) noexcept {
    void* const bytes = mmap(nullptr, whole(length), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return bytes == MAP_FAILED ? nullptr : static_cast<std::byte*>(bytes);
}

void unmap(std::byte* bytes, std::uint64_t length) noexcept { munmap(bytes, whole(length)); }

bool usable(std::uint64_t begin, std::uint64_t length) noexcept {
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");  // "first-last rwxp ...", in order of the addresses
    if (maps == nullptr) return true;                             // no way to tell
    std::uint64_t at = begin;
    char line[512];
    while (at < begin + length && std::fgets(line, sizeof line, maps) != nullptr) {
        unsigned long long first = 0, last = 0;
        char access[5] = "";
        if (std::sscanf(line, "%llx-%llx %4s", &first, &last, access) != 3 || at >= last) continue;
        if (at < first || access[0] != 'r' || access[1] != 'w') break;
        at = last;
    }
    std::fclose(maps);
    return at >= begin + length;
}

}  // namespace ftcuda::sim::pages
