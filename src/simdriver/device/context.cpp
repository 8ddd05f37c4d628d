// Exports: primary contexts, and the stack of current ones.
#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../schedule/scheduler.hpp"
#include "../state/per_thread.hpp"
#include "../state/profile.hpp"
#include "../timeline/capture_rules.hpp"
#include "../timeline/timeline.hpp"

#include <cstdio>

namespace ftcuda::sim {

namespace {

// The contexts that the calling thread has below its current one, the lowest first.
std::vector<CUcontext>& below() {
    static const PerThread<std::vector<CUcontext>> mine;
    return *mine;
}

// Takes the top off the calling thread's stack of contexts; what is below becomes current.
void pop_context() {
    std::vector<CUcontext>& stack = below();
    current_context = stack.empty() ? nullptr : stack.back();
    if (!stack.empty()) stack.pop_back();
}

}  // namespace

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
        double_destruction::report_release("primary context");
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

namespace {

// What all that was submitted so far ends at.
std::vector<Point> latest(const Context& context) {
    std::vector<Point> points = context.lingering;
    if (context.legacy) points.push_back(context.legacy->latest());
    for (const auto& [thread, stream] : context.per_thread) points.push_back(stream->latest());
    for (const std::weak_ptr<Stream>& weak : context.streams) {
        if (const std::shared_ptr<Stream> stream = weak.lock()) points.push_back(stream->latest());
    }
    return points;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuCtxSynchronize() {
    FTCUDA_SIM_ENTER(cuCtxSynchronize);
    Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_context_wait(*context); result != CUDA_SUCCESS) return result;
    for (const Point& point : latest(*context)) {
        if (const CUresult result = wait_for(lock, *context, point); result != CUDA_SUCCESS) return result;
    }
    std::fflush(stdout);
    return context->failure;
}

// For a wait of a scheduled thread for all of its context. The driver's ABI has no such question, and the scheduler
// does not know the threads that others keep in cuCtxSynchronize. 0: the calling thread is not scheduled.
FTCUDA_SIM_EXPORT int ftcuda_clock_ask_context(int* answer) {
    if (!scheduler::is_scheduled()) return 0;
    scheduler::point("question about a context");
    const Guard lock(driver_state().mutex);
    const auto ask_all = []() -> CUresult {
        Context* context = nullptr;
        if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
        if (const CUresult result = forbid_context_wait(*context); result != CUDA_SUCCESS) return result;
        for (const Point& point : latest(*context)) {
            if (const CUresult result = ask(point); result != CUDA_SUCCESS) return result;
        }
        return CUDA_SUCCESS;
    };
    *answer = ask_all();
    return 1;
}

FTCUDA_SIM_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    FTCUDA_SIM_ENTER(cuCtxGetStreamPriorityRange);
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
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
