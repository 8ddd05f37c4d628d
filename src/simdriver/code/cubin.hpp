// Cubins: ELF files for CUDA's machine. A GPU compiler's holds machine code, which nobody here can run. The NVRTC that
// stands in front of the real one (nvrtc/) adds the PTX that the machine code was made from, as one section more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ftcuda::sim {

struct Cubin {
    unsigned architecture = 0;  // 90 for sm_90
    const char* ptx = nullptr;  // ends with a zero; null: a GPU compiler's own, with nothing added
};

bool is_elf(const char* image) noexcept;

// Reads a cubin of which at least `size` bytes are there; nobody knows the size of an image that is a mere pointer, and
// then the file's own numbers are believed. False for what is no whole cubin.
bool read_cubin(const char* image, std::uint64_t size, Cubin& cubin) noexcept;

// The cubin with a section for the PTX, or nothing if `cubin` is no whole cubin.
std::string add_ptx(std::string_view cubin, std::string_view ptx);

}  // namespace ftcuda::sim
