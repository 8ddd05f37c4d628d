// Exports: pinned memory that the program brings with it, and questions about pinned memory.
#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../state/allocations.hpp"
#include "../timeline/capture_rules.hpp"
#include "memory.hpp"
#include "pages.hpp"

namespace ftcuda::sim {

namespace {

constexpr unsigned known_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                 CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

bool is_pinned(const Allocation* allocation) noexcept {
    return allocation != nullptr && (allocation->kind == Kind::pinned || allocation->kind == Kind::registered);
}

// The allocation that has some byte of [begin, begin + size), else null.
const Allocation* any_in(std::uint64_t begin, std::uint64_t size) {
    const std::map<std::uint64_t, Allocation>& all = driver_state().allocations;
    auto after = all.lower_bound(begin + size);
    if (after == all.begin()) return nullptr;
    const Allocation& last = std::prev(after)->second;
    return last.begin + last.size > begin ? &last : nullptr;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned flags) {
    FTCUDA_SIM_ENTER(cuMemHostRegister_v2);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(pointer);
    if (pointer == nullptr || bytes == 0 || begin + bytes < begin || (flags & ~known_flags) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    // As the device's attributes say: there is no memory of other devices, and none that the device may only read.
    if ((flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    const Allocation* const other = any_in(begin, bytes);
    if (is_pinned(other)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (other != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!pages::usable(begin, bytes)) return CUDA_ERROR_INVALID_VALUE;
    Allocation allocation;
    allocation.begin = begin;
    allocation.size = allocation.in_use = allocation.reachable = bytes;
    allocation.bytes = static_cast<std::byte*>(pointer);
    allocation.kind = Kind::registered;
    allocation.device = context->device;
    allocation.flags = flags;
    allocation.id = driver_state().next_allocation_id++;
    driver_state().allocations.emplace(begin, std::move(allocation));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemHostUnregister(void* pointer) {
    FTCUDA_SIM_ENTER(cuMemHostUnregister);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    Allocation* const allocation = allocation_at(reinterpret_cast<std::uintptr_t>(pointer));
    if (allocation == nullptr || allocation->kind != Kind::registered || allocation->bytes != pointer) {
        double_destruction::report("memory unregistered that is not registered");
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    release(*allocation);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_pointer, void* pointer, unsigned flags) {
    FTCUDA_SIM_ENTER(cuMemHostGetDevicePointer_v2);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(pointer);
    if (flags != 0 || !is_pinned(allocation_at(address))) return CUDA_ERROR_INVALID_VALUE;
    *device_pointer = address;  // one address for both, as CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM says
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemHostGetFlags(unsigned* flags, void* pointer) {
    FTCUDA_SIM_ENTER(cuMemHostGetFlags);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    const Allocation* const allocation = allocation_at(reinterpret_cast<std::uintptr_t>(pointer));
    if (!is_pinned(allocation)) return CUDA_ERROR_INVALID_VALUE;
    *flags = allocation->flags;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
