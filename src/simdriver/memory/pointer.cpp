// Exports: what an address is.
#include "../calls/gate.hpp"
#include "../state/allocations.hpp"

namespace ftcuda::sim {

namespace {

template <class Value>
CUresult put(void* place, Value value) noexcept {
    *static_cast<Value*>(place) = value;
    return CUDA_SUCCESS;
}

// Of memory that the driver knows.
CUresult tell(void* value, int attribute, const Allocation& allocation, CUdeviceptr pointer) {
    const bool on_host = allocation.kind == Kind::pinned || allocation.kind == Kind::registered;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put(value, driver_state().contexts[static_cast<std::size_t>(allocation.device)]->handle);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put<unsigned>(value, on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(value, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (allocation.kind == Kind::device) return CUDA_ERROR_INVALID_VALUE;
        return put(value, reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer)));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put<unsigned char>(value, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put<unsigned long long>(value, allocation.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put<unsigned>(value, allocation.kind == Kind::managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put<int>(value, allocation.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return put<unsigned char>(value, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put<CUdeviceptr>(value, allocation.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put<std::size_t>(value, allocation.size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put<unsigned char>(value, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put<std::uint64_t>(value, CU_MEM_HANDLE_TYPE_NONE);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put<unsigned char>(value, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put<unsigned>(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return put<CUmemoryPool>(value, allocation.pool ? allocation.pool->handle : nullptr);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

// Of an address that the driver knows nothing of: what cuPointerGetAttributes gives in place of an error.
CUresult tell_nothing(void* value, int attribute) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put<CUcontext>(value, nullptr);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put<CUmemoryPool>(value, nullptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return put<void*>(value, nullptr);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put<int>(value, CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return put<unsigned>(value, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put<CUdeviceptr>(value, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put<unsigned long long>(value, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put<std::size_t>(value, 0);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put<std::uint64_t>(value, 0);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put<unsigned>(value, 0);  // four bytes, as driver 580
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put<unsigned char>(value, 0);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer) {
    FTCUDA_SIM_ENTER(cuPointerGetAttribute);
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(driver_state().mutex);
    const Allocation* const allocation = find_allocation(pointer, 1);
    return allocation != nullptr ? tell(value, attribute, *allocation, pointer) : CUDA_ERROR_INVALID_VALUE;
}

FTCUDA_SIM_EXPORT CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CUdeviceptr pointer) {
    FTCUDA_SIM_ENTER(cuPointerGetAttributes);
    if (attributes == nullptr || values == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(driver_state().mutex);
    const Allocation* const allocation = find_allocation(pointer, 1);
    for (unsigned index = 0; index < count; ++index) {
        const bool absent = allocation == nullptr || (attributes[index] == CU_POINTER_ATTRIBUTE_HOST_POINTER &&
                                                      allocation->kind == Kind::device);
        const CUresult result = absent ? tell_nothing(values[index], attributes[index])
                                       : tell(values[index], attributes[index], *allocation, pointer);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) {
    FTCUDA_SIM_ENTER(cuMemGetAddressRange_v2);
    const Guard lock(driver_state().mutex);
    const Allocation* const allocation = find_allocation(pointer, 1);
    if (allocation == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = allocation->begin;
    if (bytes != nullptr) *bytes = allocation->size;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
