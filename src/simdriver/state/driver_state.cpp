#include "driver_state.hpp"

#include "per_thread.hpp"

#include <atomic>
#include <thread>

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

void violation(const std::string& text) {
    constexpr std::size_t kept = 256;
    DriverState& state = driver_state();
    ++state.violation_count;
    if (state.violations.size() < kept) state.violations.push_back(text);
}

CUresult current(Context*& context) {
    if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const std::shared_ptr<Context> found = driver_state().context_handles.find(current_context);
    if (!found || found->retained == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context = found.get();
    return context->failure;
}

namespace {

// Ends the calling thread's own default streams with it.
struct ThreadEnd {
    const std::uint64_t thread = this_thread();

    ~ThreadEnd() {
        const Guard lock(driver_state().mutex);
        for (const std::shared_ptr<Context>& context : driver_state().contexts) {
            const auto mine = context->per_thread.find(thread);
            if (mine == context->per_thread.end()) continue;
            retire_queue(*mine->second);
            context->per_thread.erase(mine);
        }
    }
};

std::shared_ptr<Stream> make_token_stream(Context& context, CUstream token) {
    auto stream = std::make_shared<Stream>();
    stream->context = &context;
    stream->handle = token;
    stream->queue = std::make_shared<Queue>();
    stream->queue->context = &context;
    stream->id = stream->queue->id = driver_state().next_stream_id++;
    if (token == CU_STREAM_PER_THREAD) {
        context.streams.push_back(stream);
        static const PerThread<ThreadEnd> end;
        static_cast<void>(*end);
    }
    return stream;
}

}  // namespace

CUresult find_stream(CUstream handle, std::shared_ptr<Stream>& stream) {
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        Context* context = nullptr;
        if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
        std::shared_ptr<Stream>& slot =
            handle == CU_STREAM_PER_THREAD ? context->per_thread[this_thread()] : context->legacy;
        if (!slot)
            slot =
                make_token_stream(*context, handle == CU_STREAM_PER_THREAD ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
        stream = slot;
        return CUDA_SUCCESS;
    }
    stream = driver_state().streams.find(handle);
    if (!stream) {
        violation("stale or foreign stream handle");
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return stream->context->failure;
}

CUresult find_event(CUevent handle, std::shared_ptr<Event>& event) {
    event = driver_state().events.find(handle);
    if (!event) {
        violation("stale or foreign event handle");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return event->context->failure;
}

}  // namespace ftcuda::sim
