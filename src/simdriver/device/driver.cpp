// Exports: the driver itself.
#include "../calls/faults.hpp"
#include "../calls/gate.hpp"
#include "../state/profile.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>

namespace ftcuda::sim {

namespace {

struct Error {
    CUresult code;
    const char* name;
    const char* text;
};

constexpr Error errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
     "shared object symbol not found"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_INVALID_PC, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in cooperative launch"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Error* find_error(CUresult code) noexcept {
    for (const Error& error : errors) {
        if (error.code == code) return &error;
    }
    return nullptr;
}

// Whether the driver has a second form of a call, in which no stream means the calling thread's own. There is none
// here.
bool has_per_thread_form(const CallDescription& call) noexcept {
    if (std::strcmp(call.name, "cuStreamDestroy") == 0) return false;
    const bool copies = std::strncmp(call.name, "cuMemcpy", 8) == 0 || std::strncmp(call.name, "cuMemset", 8) == 0;
    return call.takes_stream || copies || std::strcmp(call.name, "cuLaunchKernelEx") == 0;
}

// What cuGetProcAddress of this driver answers: 0 found, 1 no such symbol, 2 newer than the version asked for.
int look_up(const char* name, int version, std::uint64_t flags, void** function) noexcept {
    *function = nullptr;
    const CallDescription* best = nullptr;
    bool known = false;
    for (unsigned index = 0; index < static_cast<unsigned>(Call::count); ++index) {
        const CallDescription& call = describe(static_cast<Call>(index));
        if (std::strcmp(call.name, name) != 0 || call.version > profile()->driver_version) continue;
        known = true;
        if (call.version <= version && (best == nullptr || call.version > best->version)) best = &call;
    }
    if (best == nullptr) return known ? 2 : 1;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 && has_per_thread_form(*best)) return 1;
    *function = best->address;
    return 0;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                                               int* found) {
    if (profile() == nullptr || profile()->driver_version < 12000) return CUDA_ERROR_NOT_FOUND;
    if (version > profile()->driver_version) return CUDA_ERROR_INVALID_VALUE;
    const int answer = look_up(name, version, flags, function);
    if (found != nullptr) *found = answer;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
    if (profile() == nullptr || profile()->driver_version < 11030) return CUDA_ERROR_NOT_FOUND;
    if (version > profile()->driver_version) return CUDA_ERROR_INVALID_VALUE;
    return look_up(name, version, flags, function) == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

FTCUDA_SIM_EXPORT CUresult cuInit(unsigned flags) {
    if (profile() == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = CUDA_SUCCESS;
    if (apply_faults(Call::cuInit, result)) return result;
    DriverState& state = driver_state();
    const Guard lock(state.mutex);
    if (state.initialised.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
    if (device_count() <= 0) return CUDA_ERROR_NO_DEVICE;
    refuse_after_fork();
    for (int device = 0; device < device_count(); ++device) {
        auto context = std::make_shared<Context>();
        context->device = device;
        context->handle = reinterpret_cast<CUcontext>(state.context_handles.add(context));
        state.contexts.push_back(context);
        auto pool = std::make_shared<Pool>();
        pool->device = device;
        pool->is_default = true;
        pool->handle = reinterpret_cast<CUmemoryPool>(state.pools.add(pool));
        state.default_pools.push_back(pool);
        state.current_pools.push_back(pool);
        state.memory_limits.push_back(0);
        state.memory_used.push_back(0);
        state.graph_memory.emplace_back();
    }
    state.initialised.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDriverGetVersion(int* version) {
    if (profile() == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = profile()->driver_version;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGetErrorName(CUresult code, const char** name) {
    const Error* const error = find_error(code);
    *name = error != nullptr ? error->name : nullptr;
    return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FTCUDA_SIM_EXPORT CUresult cuGetErrorString(CUresult code, const char** text) {
    const Error* const error = find_error(code);
    *text = error != nullptr ? error->text : nullptr;
    return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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

// The tables behind it are private to NVIDIA's own libraries. NVRTC asks for one and does without; the CUDA runtime
// cannot.
FTCUDA_SIM_EXPORT CUresult cuGetExportTable(const void** table, const CUuuid* id) {
    if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    if (std::memcmp(id, runtime_table, sizeof runtime_table) == 0) name_the_runtime();
    return CUDA_ERROR_NOT_FOUND;
}

}  // namespace ftcuda::sim
