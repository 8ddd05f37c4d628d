// Exports: stream capture.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../checkers/lost_captures.hpp"
#include "../timeline/capture_rules.hpp"
#include "../timeline/ended_objects.hpp"
#include "../timeline/recording.hpp"
#include "../timeline/stream.hpp"
#include "nodes.hpp"

#include <algorithm>

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

CUresult tell_capture(CUstream handle, int* status, unsigned long long* id, CUgraph* graph,
                      const CUgraphNode** dependencies, const CUgraphEdgeData** edges, std::size_t* count) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Capture> capture;
    if (const CUresult result = find_capture(handle, capture); result != CUDA_SUCCESS) return result;
    *status = status_of(capture);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    stream->shown.clear();
    for (const std::shared_ptr<Node>& node : stream->captured) {
        if (node->graph != nullptr) stream->shown.push_back(node->handle);
    }
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = capture->graph->handle;
    if (dependencies != nullptr) *dependencies = stream->shown.data();
    stream->shown_edges.assign(stream->shown.size(), {});  // all of them wait for the whole of a node
    if (edges != nullptr) *edges = stream->shown_edges.data();
    if (count != nullptr) *count = stream->shown.size();
    return CUDA_SUCCESS;
}

CUresult begin(CUstream handle, int mode, const std::shared_ptr<Graph>& into, const Nodes& dependencies) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (handle == nullptr || handle == CU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    capture->origin = stream;
    capture->thread = this_thread();
    capture->mode = mode;
    capture->id = ++driver_state().capture_count;
    capture->graph = into ? into : make_graph();
    join(capture, stream, dependencies);
    driver_state().captures.push_back(capture);
    return CUDA_SUCCESS;
}

// Whether what the other streams captured comes before the end of the one in which it began.
bool is_joined(const Capture& capture) {
    return std::all_of(capture.joined.begin(), capture.joined.end(), [&](const std::shared_ptr<Stream>& stream) {
        return come_before(stream->captured, capture.origin->captured);
    });
}

// What its end answers.
CUresult result_of(const Capture& capture) {
    if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.thread != this_thread())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return is_joined(capture) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
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
    return tell_capture(handle, status, id, graph, dependencies, nullptr, count);
}

FTCUDA_SIM_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream handle, int* status, unsigned long long* id,
                                                     CUgraph* graph, const CUgraphNode** dependencies,
                                                     const CUgraphEdgeData** edges, std::size_t* count) {
    FTCUDA_SIM_ENTER(cuStreamGetCaptureInfo_v3);
    return tell_capture(handle, status, id, graph, dependencies, edges, count);
}

namespace {

CUresult update_dependencies(CUstream handle, const CUgraphNode* nodes, std::size_t count, unsigned flags) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    Nodes found;
    if (const CUresult result = find_nodes(nodes, count, *stream->capture->graph, found); result != CUDA_SUCCESS)
        return result;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->captured.clear();
    add_once(stream->captured, found);
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                                             unsigned flags) {
    FTCUDA_SIM_ENTER(cuStreamUpdateCaptureDependencies);
    return update_dependencies(stream, nodes, count, flags);
}

FTCUDA_SIM_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                                                const CUgraphEdgeData* edges, std::size_t count,
                                                                unsigned flags) {
    FTCUDA_SIM_ENTER(cuStreamUpdateCaptureDependencies_v2);
    if (const CUresult result = check_edges(edges, count); result != CUDA_SUCCESS) return result;
    return update_dependencies(stream, nodes, count, flags);
}

namespace {

// The graph that the end of a capture destroys, because the capture has failed; else null.
CUgraph failing_graph(CUstream handle) {
    if (is_forked()) return nullptr;
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Stream> stream = driver_state().streams.find(handle);
    const std::shared_ptr<Capture> capture = stream ? stream->capture : nullptr;
    const bool fails = capture && capture->origin == stream && result_of(*capture) != CUDA_SUCCESS;
    return fails ? capture->graph->handle : nullptr;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
    FTCUDA_SIM_ENTER(cuStreamBeginCapture_v2);
    const Guard lock(driver_state().mutex);
    return begin(handle, mode, nullptr, {});
}

FTCUDA_SIM_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode* dependencies,
                                                       const CUgraphEdgeData* edges, std::size_t count, int mode) {
    const graph_threads::Inside inside{handle};
    FTCUDA_SIM_ENTER(cuStreamBeginCaptureToGraph);
    if (const CUresult result = check_edges(edges, count); result != CUDA_SUCCESS) return result;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    Nodes nodes;
    if (const CUresult result = find_nodes(dependencies, count, *graph, nodes); result != CUDA_SUCCESS) return result;
    return begin(stream, mode, graph, nodes);
}

FTCUDA_SIM_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    const auto inside = graph_threads::Inside::to_destroy(failing_graph(handle));
    FTCUDA_SIM_ENTER(cuStreamEndCapture);
    DriverState& state = driver_state();
    EndedObjects ended;
    const Guard lock(state.mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) {
        capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    const CUresult result = result_of(*capture);
    end_capture(capture);
    lost_captures::graph_used(*capture->graph);
    if (result == CUDA_SUCCESS) {
        *graph = capture->graph->handle;
    } else {
        ended.capture_failed(*capture->graph);
    }
    return result;
}

}  // namespace ftcuda::sim
