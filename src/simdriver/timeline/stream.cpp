// Exports: streams and host functions.
#include "../calls/gate.hpp"
#include "../state/profile.hpp"
#include "../checkers/races.hpp"

#include <algorithm>

namespace ftcuda::sim {

// What a query answers.
CUresult ask(const Point& point) {
    if (!point.reached()) return CUDA_ERROR_NOT_READY;
    races::host_saw(point);
    return CUDA_SUCCESS;
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
    const Guard lock(state.mutex);
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<Stream> stream = state.streams.remove(handle);
    if (!stream) {
        violation("stream destroyed that does not exist (twice, or foreign)");
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (stream->capture) {
        violation("stream destroyed while it captures");
        stream->capture->invalidated = true;
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

FTCUDA_SIM_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned) {
    FTCUDA_SIM_ENTER(cuStreamWaitEvent);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Event> event;
    if (const CUresult result = find_event(event_handle, event); result != CUDA_SUCCESS) return result;
    if (event->capture) {
        if (stream->capture && stream->capture != event->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        if (!stream->capture) event->capture->joined.push_back(stream);
        stream->capture = event->capture;
        return CUDA_SUCCESS;
    }
    if (stream->capture) {
        stream->capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    Work work;
    work.after.push_back(event->point);
    submit(*stream, std::move(work));
    return CUDA_SUCCESS;
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
    Work work;
    work.run = [function, user_data] {
        function(user_data);
        return CUDA_SUCCESS;
    };
    submit(*stream, std::move(work));
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
