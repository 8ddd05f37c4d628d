// Tells the simulated driver which memory is set aside: allocated as it sees it, but nobody's until the cache that has it gives it
// out again. It then reports whoever touches it.
//
// A library that wants to be told exports ftcuda_memory_set_aside.
#pragma once

#include "abi.hpp"

namespace ftcuda::driver {

class Library;

namespace aside {

void find(const Library& library);

// In the order of `stream`; at once if it is null.
void set(abi::CUdeviceptr pointer, abi::CUstream stream) noexcept;
void clear(abi::CUdeviceptr pointer, abi::CUstream stream) noexcept;

}  // namespace aside
}  // namespace ftcuda::driver
