// Exports that other programs call: the private tables, questions about devices, the stack of current contexts.
#include "../calls/gate.hpp"
#include "../state/profile.hpp"

#include "../state/per_thread.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>

namespace ftcuda::sim {

namespace {

bool valid_device(CUdevice device) noexcept { return device >= 0 && device < device_count(); }

// The contexts that the calling thread has below its current one, the lowest first.
std::vector<CUcontext>& below() {
    static const PerThread<std::vector<CUcontext>> mine;
    return *mine;
}

}  // namespace

void pop_context() {
    std::vector<CUcontext>& stack = below();
    current_context = stack.empty() ? nullptr : stack.back();
    if (!stack.empty()) stack.pop_back();
}

namespace {

// The table of functions that only the CUDA runtime asks for, and without which it does nothing: it got this far
// through cuInit and cuGetProcAddress, and gives up with cudaErrorSymbolNotFound, which does not say what is missing.
constexpr unsigned char runtime_table[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                             0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

void name_the_runtime() {
    static std::once_flag said;
    std::call_once(said, [] {
        std::fputs(
            "ftcuda's simulated driver: the CUDA runtime (libcudart) needs a private table of NVIDIA's driver, "
            "which is not simulated, so each of its calls fails with cudaErrorSymbolNotFound; "
            "call the driver's own functions instead\n",
            stderr);
    });
}

}  // namespace

// The tables behind it are private to NVIDIA's own libraries. NVRTC asks for one and does without;
// the CUDA runtime cannot.
FTCUDA_SIM_EXPORT CUresult cuGetExportTable(const void** table, const CUuuid* id) {
    if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    if (std::memcmp(id, runtime_table, sizeof runtime_table) == 0) name_the_runtime();
    return CUDA_ERROR_NOT_FOUND;
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
    const std::shared_ptr<Pool> pool = driver_state().pools.find(handle);
    if (!pool) {
        violation("stale or foreign memory pool handle");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (pool->location != CU_MEM_LOCATION_TYPE_DEVICE || pool->device != device) return CUDA_ERROR_INVALID_DEVICE;
    driver_state().current_pools[static_cast<std::size_t>(device)] = pool;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    FTCUDA_SIM_ENTER(cuDevicePrimaryCtxGetState);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    if (flags != nullptr) *flags = 0;
    if (active != nullptr) *active = driver_state().contexts[static_cast<std::size_t>(device)]->retained != 0;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    FTCUDA_SIM_ENTER(cuCtxPushCurrent_v2);
    const Guard lock(driver_state().mutex);
    if (!driver_state().context_handles.find(context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (current_context != nullptr) below().push_back(current_context);
    current_context = context;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    FTCUDA_SIM_ENTER(cuCtxPopCurrent_v2);
    if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = current_context;
    pop_context();
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuCtxGetFlags(unsigned* flags) {
    FTCUDA_SIM_ENTER(cuCtxGetFlags);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    *flags = 0;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
