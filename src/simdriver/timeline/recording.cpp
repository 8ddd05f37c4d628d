#include "recording.hpp"

#include <algorithm>

namespace ftcuda::sim {

CUresult check_submission(const Stream& stream) {
    if (stream.capture) return stream.capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    if (&stream != stream.context->legacy.get()) return CUDA_SUCCESS;
    bool waits = false;
    for (const std::shared_ptr<Capture>& capture : driver_state().captures) {
        for (const std::shared_ptr<Stream>& joined : capture->joined) {
            if ((joined->flags & CU_STREAM_NON_BLOCKING) != 0 || joined->context != stream.context) continue;
            capture->invalidated = true;
            waits = true;
        }
    }
    return waits ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

void record(Stream& stream, Operation operation) {
    Nodes& before = stream.captured;
    const auto is_gone = [](const std::shared_ptr<Node>& node) { return node->graph == nullptr; };
    before.erase(std::remove_if(before.begin(), before.end(), is_gone), before.end());
    before = {add_node(*stream.capture->graph, std::move(operation), before)};
}

bool is_live(const std::shared_ptr<Capture>& capture) {
    const std::vector<std::shared_ptr<Capture>>& all = driver_state().captures;
    return std::find(all.begin(), all.end(), capture) != all.end();
}

void join(const std::shared_ptr<Capture>& capture, const std::shared_ptr<Stream>& stream, const Nodes& nodes) {
    if (!stream->capture) capture->joined.push_back(stream);
    stream->capture = capture;
    add_once(stream->captured, nodes);
}

}  // namespace ftcuda::sim
