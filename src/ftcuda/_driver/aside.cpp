#include "aside.hpp"

#include "library.hpp"

#include <atomic>

namespace ftcuda::driver::aside {

namespace {

using SetAside = void (*)(abi::CUdeviceptr pointer, abi::CUstream stream, int aside);

// Published once with release, when the driver is loaded; read with acquire.
std::atomic<SetAside> told{nullptr};

void tell(abi::CUdeviceptr pointer, abi::CUstream stream, int aside) noexcept {
    if (const SetAside found = told.load(std::memory_order_acquire)) found(pointer, stream, aside);
}

}  // namespace

void find(const Library& library) {
    told.store(reinterpret_cast<SetAside>(library.symbol("ftcuda_memory_set_aside")), std::memory_order_release);
}

void set(abi::CUdeviceptr pointer, abi::CUstream stream) noexcept { tell(pointer, stream, 1); }
void clear(abi::CUdeviceptr pointer, abi::CUstream stream) noexcept { tell(pointer, stream, 0); }

}  // namespace ftcuda::driver::aside
