#include "memory_marking.hpp"

#include "library.hpp"

#include <atomic>

namespace ftcuda::driver::memory_marking {

namespace {

using InUse = void (*)(abi::CUdeviceptr pointer, std::size_t bytes, abi::CUstream stream);

// Published once with release, when the driver is loaded; read with acquire.
std::atomic<InUse> told{nullptr};

void tell(abi::CUdeviceptr pointer, std::size_t bytes, abi::CUstream stream) noexcept {
    if (const InUse found = told.load(std::memory_order_acquire)) found(pointer, bytes, stream);
}

}  // namespace

void find(const Library& library) {
    told.store(reinterpret_cast<InUse>(library.symbol("ftcuda_memory_in_use")), std::memory_order_release);
}

void mark_free(abi::CUdeviceptr pointer, abi::CUstream stream) noexcept { tell(pointer, 0, stream); }
void mark_in_use(abi::CUdeviceptr pointer, abi::CUstream stream, std::size_t bytes) noexcept {
    tell(pointer, bytes, stream);
}

}  // namespace ftcuda::driver::memory_marking
