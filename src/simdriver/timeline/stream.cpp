// Exports: streams and host functions.
#include "stream.hpp"

#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../checkers/lost_captures.hpp"
#include "../checkers/stale_handles.hpp"
#include "../state/per_thread.hpp"
#include "capture_rules.hpp"
#include "ended_objects.hpp"
#include "host_function.hpp"
#include "recording.hpp"
#include "timeline.hpp"

#include <algorithm>

namespace ftcuda::sim {

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
    stream = stale_handles::find(driver_state().streams, handle, "stream");
    if (!stream) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return stream->context->failure;
}

namespace {

CUresult create(CUstream* handle, unsigned flags, int priority) {
    DriverState& state = driver_state();
    const Guard lock(state.mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>();
    stream->context = context;
    stream->queue = std::make_shared<Queue>();
    stream->queue->context = context;
    stream->flags = flags;
    stream->priority = std::clamp(priority, -5, 0);
    stream->id = stream->queue->id = state.next_stream_id++;
    stream->handle = reinterpret_cast<CUstream>(state.streams.add(stream));
    auto& streams = context->streams;
    streams.erase(std::remove_if(streams.begin(), streams.end(), [](const auto& weak) { return weak.expired(); }),
                  streams.end());
    streams.push_back(stream);
    *handle = stream->handle;
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    FTCUDA_SIM_ENTER(cuStreamCreateWithPriority);
    return create(stream, flags, priority);
}

FTCUDA_SIM_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
    FTCUDA_SIM_ENTER(cuStreamCreate);
    return create(stream, flags, 0);
}

FTCUDA_SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
    FTCUDA_SIM_ENTER(cuStreamDestroy_v2);
    DriverState& state = driver_state();
    EndedObjects ended;
    const Guard lock(state.mutex);
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<Stream> stream = double_destruction::remove(state.streams, handle, "stream destroyed");
    if (!stream) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    lost_captures::stream_destroyed(*stream);
    if (const std::shared_ptr<Capture> capture = stream->capture; capture && capture->origin == stream) {
        end_capture(capture);
        ended.capture_failed(*capture->graph);
    }
    retire_queue(*stream);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuStreamQuery(CUstream handle) {
    FTCUDA_SIM_ENTER(cuStreamQuery);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_on_capturing(*stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    return ask(stream->latest());
}

FTCUDA_SIM_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
    FTCUDA_SIM_ENTER(cuStreamSynchronize);
    Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_on_capturing(*stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    return wait_for(lock, *stream->context, stream->latest());
}

namespace {

// For the questions a stream always answers: answer(stream), under the lock.
template <class Answer>
CUresult tell(CUstream handle, Answer answer) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    answer(*stream);
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned* flags) {
    FTCUDA_SIM_ENTER(cuStreamGetFlags);
    return tell(handle, [&](const Stream& stream) { *flags = stream.flags; });
}

FTCUDA_SIM_EXPORT CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    FTCUDA_SIM_ENTER(cuStreamGetPriority);
    return tell(handle, [&](const Stream& stream) { *priority = stream.priority; });
}

FTCUDA_SIM_EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
    FTCUDA_SIM_ENTER(cuStreamGetCtx);
    return tell(handle, [&](const Stream& stream) { *context = stream.context->handle; });
}

FTCUDA_SIM_EXPORT CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
    FTCUDA_SIM_ENTER(cuStreamGetDevice);
    return tell(handle, [&](const Stream& stream) { *device = stream.context->device; });
}

FTCUDA_SIM_EXPORT CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    FTCUDA_SIM_ENTER(cuStreamGetId);
    return tell(handle, [&](const Stream& stream) { *id = stream.id; });
}

FTCUDA_SIM_EXPORT CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* user_data) {
    FTCUDA_SIM_ENTER(cuLaunchHostFunc);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    const HostOperation operation{function, user_data};
    if (stream->capture) {
        record(*stream, {operation, {}});
    } else {
        submit(*stream, prepare_host(operation));
    }
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
