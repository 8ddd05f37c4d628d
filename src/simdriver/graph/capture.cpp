// Exports: stream capture. What it records is counted.
#include "../calls/gate.hpp"
#include "../timeline/capture_rules.hpp"
#include "../timeline/ended_objects.hpp"
#include "../timeline/stream.hpp"

namespace ftcuda::sim {

FTCUDA_SIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
    FTCUDA_SIM_ENTER(cuThreadExchangeStreamCaptureMode);
    if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, capture_mode);
    return CUDA_SUCCESS;
}

namespace {

// What is captured in the stream; an error for the legacy default stream while a stream that waits for it is captured.
CUresult find_capture(CUstream handle, std::shared_ptr<Capture>& capture) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    capture = stream->capture;
    if (handle != nullptr && handle != CU_STREAM_LEGACY) return CUDA_SUCCESS;
    for (const std::shared_ptr<Capture>& each : driver_state().captures) {
        for (const std::shared_ptr<Stream>& joined : each->joined) {
            const bool waits = (joined->flags & CU_STREAM_NON_BLOCKING) == 0;
            if (waits && joined->context == stream->context) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

int status_of(const std::shared_ptr<Capture>& capture) noexcept {
    return !capture               ? CU_STREAM_CAPTURE_STATUS_NONE
           : capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuStreamIsCapturing(CUstream handle, int* status) {
    FTCUDA_SIM_ENTER(cuStreamIsCapturing);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Capture> capture;
    if (const CUresult result = find_capture(handle, capture); result != CUDA_SUCCESS) return result;
    *status = status_of(capture);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream handle, int* status, unsigned long long* id,
                                                     CUgraph* graph, const CUgraphNode** dependencies,
                                                     std::size_t* count) {
    FTCUDA_SIM_ENTER(cuStreamGetCaptureInfo_v2);
    if (dependencies != nullptr || count != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Capture> capture;
    if (const CUresult result = find_capture(handle, capture); result != CUDA_SUCCESS) return result;
    *status = status_of(capture);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = capture->graph_handle;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
    FTCUDA_SIM_ENTER(cuStreamBeginCapture_v2);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (handle == nullptr || handle == CU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return CUDA_ERROR_INVALID_VALUE;
    auto capture = std::make_shared<Capture>();
    capture->origin = stream;
    capture->thread = this_thread();
    capture->mode = mode;
    capture->joined.push_back(stream);
    capture->id = ++driver_state().capture_count;
    capture->graph = std::make_shared<Graph>();
    capture->graph_handle = reinterpret_cast<CUgraph>(driver_state().graphs.add(capture->graph));
    stream->capture = capture;
    driver_state().captures.push_back(capture);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    FTCUDA_SIM_ENTER(cuStreamEndCapture);
    DriverState& state = driver_state();
    EndedObjects ended;
    const Guard lock(state.mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture || capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    end_capture(capture);
    if (capture->invalidated) {
        ended.graph_is_gone(*state.graphs.remove(capture->graph_handle));
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *graph = capture->graph_handle;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    FTCUDA_SIM_ENTER(cuGraphDestroy);
    EndedObjects ended;
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Graph> gone = driver_state().graphs.remove(graph);
    if (!gone) return CUDA_ERROR_INVALID_VALUE;
    ended.graph_is_gone(*gone);
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
