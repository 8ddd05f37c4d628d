#include "driver_state.hpp"

#include <atomic>

namespace ftcuda::sim {

thread_local CUcontext current_context = nullptr;
thread_local int capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

DriverState& driver_state() noexcept {
    static DriverState& only =
        *new DriverState;  // never destroyed: workers and daemon threads use it while the process exits
    return only;
}

std::uint64_t this_thread() noexcept {
    static std::atomic<std::uint64_t> next{1};
    thread_local const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
    return mine;
}

CUresult current(Context*& context) {
    if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const std::shared_ptr<Context> found = driver_state().context_handles.find(current_context);
    if (!found || found->retained == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context = found.get();
    return context->failure;
}

bool Point::reached() const noexcept { return queue == nullptr || queue->completed >= position; }

}  // namespace ftcuda::sim
