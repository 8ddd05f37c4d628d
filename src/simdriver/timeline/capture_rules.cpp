#include "capture_rules.hpp"

#include <algorithm>

namespace ftcuda::sim {

CUresult forbid_during_capture() {
    if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    bool minded = false;
    for (const std::shared_ptr<Capture>& capture : driver_state().captures) {
        const bool own = capture->thread == this_thread() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        const bool global =
            capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!own && !global) continue;
        capture->invalidated = true;
        minded = true;
    }
    return minded ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult forbid_on_capturing(const Stream& stream) {
    if (!stream.capture) return CUDA_SUCCESS;
    stream.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult forbid_context_wait(const Context& context) {
    bool capturing = false;
    for (const std::shared_ptr<Capture>& capture : driver_state().captures) {
        if (capture->origin->context != &context) continue;
        capture->invalidated = true;
        capturing = true;
    }
    return capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

void end_capture(const std::shared_ptr<Capture>& capture) {
    for (const std::shared_ptr<Stream>& joined : capture->joined) {
        joined->capture.reset();
        joined->captured.clear();
    }
    std::vector<std::shared_ptr<Capture>>& all = driver_state().captures;
    all.erase(std::remove(all.begin(), all.end(), capture), all.end());
}

}  // namespace ftcuda::sim
