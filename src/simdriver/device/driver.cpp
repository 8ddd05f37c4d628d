// Exports: the driver itself, devices and contexts.
#include "../calls/faults.hpp"
#include "../calls/gate.hpp"
#include "../state/profile.hpp"
#include "../schedule/scheduler.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <type_traits>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace ftcuda::sim {

namespace {

template <class... Parameters>
constexpr bool takes_stream(CUresult (*)(Parameters...)) noexcept {
    return (std::is_same_v<Parameters, CUstream> || ...);
}

const CallDescription calls[] = {
#define FTCUDA_SIM_ENTRY(symbol, name, version, parameters) \
    {#symbol, name, version, reinterpret_cast<void*>(&symbol), takes_stream(&symbol)},
#include "../calls/entry_points.def"
};

std::atomic<bool> forked{false};

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

bool valid_device(CUdevice device) noexcept { return device >= 0 && device < device_count(); }

// Whether the driver has a second form of a call, in which no stream means the calling thread's own.
// There is none here.
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
    for (const CallDescription& call : calls) {
        if (std::strcmp(call.name, name) != 0 || call.version > profile()->driver_version) continue;
        known = true;
        if (call.version <= version && (best == nullptr || call.version > best->version)) best = &call;
    }
    if (best == nullptr) return known ? 2 : 1;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 && has_per_thread_form(*best)) return 1;
    *function = best->address;
    return 0;
}

// Calls that touch the calling thread alone, or nothing: no other thread can tell when they were made.
bool is_private(Call call) noexcept {
    switch (call) {
    case Call::cuCtxGetCurrent:
    case Call::cuCtxSetCurrent:
    case Call::cuCtxPushCurrent_v2:
    case Call::cuCtxPopCurrent_v2:
    case Call::cuThreadExchangeStreamCaptureMode:
    case Call::cuGetErrorName:
    case Call::cuGetErrorString: return true;
    default: return false;
    }
}

}  // namespace

const CallDescription& describe(Call call) noexcept { return calls[static_cast<unsigned>(call)]; }

Passage::~Passage() { leave_call(); }

CUresult enter(Call call) {
    if (!is_private(call)) scheduler::point(describe(call).symbol);
    CUresult result = CUDA_SUCCESS;
    if (apply_faults(call, result)) return result;
    if (forked.load(std::memory_order_relaxed)) return CUDA_ERROR_NOT_INITIALIZED;
    if (describe(call).version > profile()->driver_version) return CUDA_ERROR_NOT_FOUND;
    return driver_state().initialised.load(std::memory_order_acquire) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

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
    if (forked.load(std::memory_order_relaxed)) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = CUDA_SUCCESS;
    if (apply_faults(Call::cuInit, result)) return result;
    DriverState& state = driver_state();
    const Guard lock(state.mutex);
    if (state.initialised.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
    if (device_count() <= 0) return CUDA_ERROR_NO_DEVICE;
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
#endif
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

FTCUDA_SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    FTCUDA_SIM_ENTER(cuDevicePrimaryCtxRetain);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    Context& primary = *driver_state().contexts[static_cast<std::size_t>(device)];
    ++primary.retained;
    *context = primary.handle;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    FTCUDA_SIM_ENTER(cuDevicePrimaryCtxRelease_v2);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    Context& primary = *driver_state().contexts[static_cast<std::size_t>(device)];
    if (primary.retained == 0) {
        violation("primary context released more often than retained");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    --primary.retained;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
    FTCUDA_SIM_ENTER(cuCtxGetCurrent);
    *context = current_context;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    FTCUDA_SIM_ENTER(cuCtxSetCurrent);
    const Guard lock(driver_state().mutex);
    if (context == nullptr) {
        pop_context();
        return CUDA_SUCCESS;
    }
    if (!driver_state().context_handles.find(context)) return CUDA_ERROR_INVALID_CONTEXT;
    current_context = context;  // in place of the one on top
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
    FTCUDA_SIM_ENTER(cuCtxGetDevice);
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Context> context = driver_state().context_handles.find(current_context);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuCtxSynchronize() {
    FTCUDA_SIM_ENTER(cuCtxSynchronize);
    Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_context_wait(*context); result != CUDA_SUCCESS) return result;
    std::vector<Point> points = context->lingering;
    if (context->legacy) points.push_back(context->legacy->latest());
    for (const auto& [thread, stream] : context->per_thread) points.push_back(stream->latest());
    for (const std::weak_ptr<Stream>& weak : context->streams) {
        if (const std::shared_ptr<Stream> stream = weak.lock()) points.push_back(stream->latest());
    }
    for (const Point& point : points) {
        if (const CUresult result = wait_for(lock, *context, point); result != CUDA_SUCCESS) return result;
    }
    std::fflush(stdout);
    return context->failure;
}

FTCUDA_SIM_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    FTCUDA_SIM_ENTER(cuCtxGetStreamPriorityRange);
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
