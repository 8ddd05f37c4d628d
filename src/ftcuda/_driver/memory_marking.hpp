// Tells the simulated driver which memory is set aside: allocated as it sees it, but nobody's until the cache that has
// it gives it out again, and then somebody's only as far as was asked for. It reports whoever touches the rest.
//
// A library that wants to be told exports ftcuda_memory_in_use.
#pragma once

#include "abi.hpp"

namespace ftcuda::driver {

class Library;

namespace memory_marking {

void find(const Library& library);

// In the order of `stream`; at once if it is null.
void mark_free(abi::CUdeviceptr pointer, abi::CUstream stream) noexcept;
// The first `bytes` of it are given out; all by default, to be freed.
void mark_in_use(abi::CUdeviceptr pointer, abi::CUstream stream, std::size_t bytes = ~std::size_t{0}) noexcept;

}  // namespace memory_marking
}  // namespace ftcuda::driver
