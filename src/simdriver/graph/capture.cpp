// Exports: stream capture. What it records is counted, and there are no graphs to launch.
#include "../calls/gate.hpp"
#include "../timeline/stream.hpp"

#include <algorithm>

namespace ftcuda::sim {

FTCUDA_SIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
    FTCUDA_SIM_ENTER(cuThreadExchangeStreamCaptureMode);
    if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, capture_mode);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuStreamIsCapturing(CUstream handle, int* status) {
    FTCUDA_SIM_ENTER(cuStreamIsCapturing);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    *status = !stream->capture               ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
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
    stream->capture = capture;
    driver_state().captures.push_back(capture);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    FTCUDA_SIM_ENTER(cuStreamEndCapture);
    DriverState& state = driver_state();
    const Guard lock(state.mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture || capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    for (const std::shared_ptr<Stream>& joined : capture->joined) joined->capture.reset();
    state.captures.erase(std::remove(state.captures.begin(), state.captures.end(), capture), state.captures.end());
    if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *graph = reinterpret_cast<CUgraph>(state.graphs.add(std::make_shared<Graph>(Graph{capture->nodes})));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    FTCUDA_SIM_ENTER(cuGraphDestroy);
    const Guard lock(driver_state().mutex);
    return driver_state().graphs.remove(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace ftcuda::sim
