// Exports: devices.
#include "../calls/gate.hpp"
#include "../checkers/stale_handles.hpp"
#include "../state/profile.hpp"

#include <cstdio>

namespace ftcuda::sim {

FTCUDA_SIM_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    FTCUDA_SIM_ENTER(cuDeviceGet);
    if (!valid_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetCount(int* count) {
    FTCUDA_SIM_ENTER(cuDeviceGetCount);
    *count = device_count();
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetName(char* name, int capacity, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceGetName);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(name, static_cast<std::size_t>(capacity), "ftcuda simulated device");
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceGetAttribute);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return device_attribute(attribute, *value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceTotalMem_v2);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = device_memory();
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceGetUuid);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    for (int index = 0; index < 16; ++index) uuid->bytes[index] = static_cast<char>(0x50 + index + device);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceGetUuid_v2);
    return cuDeviceGetUuid(uuid, device);
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetPCIBusId(char* id, int capacity, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceGetPCIBusId);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(id, static_cast<std::size_t>(capacity), "0000:%02X:00.0", device + 1);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceComputeCapability);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *major = compute_capability() / 10;
    *minor = compute_capability() % 10;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    FTCUDA_SIM_ENTER(cuDeviceCanAccessPeer);
    if (!valid_device(device) || !valid_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can = 0;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDeviceGetMemPool);
    if (!profile()->memory_pools) return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    *pool = driver_state().current_pools[static_cast<std::size_t>(device)]->handle;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
    FTCUDA_SIM_ENTER(cuDeviceSetMemPool);
    if (!profile()->memory_pools) return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Pool> pool = stale_handles::find(driver_state().pools, handle, "memory pool");
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    if (pool->location != CU_MEM_LOCATION_TYPE_DEVICE || pool->device != device) return CUDA_ERROR_INVALID_DEVICE;
    driver_state().current_pools[static_cast<std::size_t>(device)] = pool;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
