// Exports: executables, from their instantiation to their end.
#include "executable.hpp"

#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../checkers/graph_threads.hpp"
#include "../checkers/lost_captures.hpp"
#include "../checkers/stale_handles.hpp"
#include "../timeline/capture_rules.hpp"
#include "../timeline/recording.hpp"
#include "../timeline/stream.hpp"
#include "../timeline/timeline.hpp"
#include "conditional.hpp"
#include "launched_memory.hpp"
#include "nodes.hpp"

#include <algorithm>
#include <unordered_set>

namespace ftcuda::sim {

using graph_threads::Inside;

CUresult find_executable(CUgraphExec handle, std::shared_ptr<Executable>& executable) {
    executable = stale_handles::find(driver_state().executables, handle, "executable graph");
    return executable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void end_idle(Executable& executable, EndedObjects& ended) {
    if (executable.in_flight != 0) return;
    for (const auto& references : executable.superseded) ended.release_all(references);
    executable.superseded.clear();
    if (executable.handle != nullptr || !executable.graph) return;
    for (const std::shared_ptr<Queue>& lane : executable.body_lanes) {
        lane->closed = true;
        lane->arrived.notify_one();
    }
    ended.graph_is_gone(*executable.graph);
    executable.graph.reset();
}

namespace {

// A node that comes before itself, or null.
const Node* in_a_circle(const Graph& graph) {
    const std::vector<Node*> order = in_order(graph);
    const std::unordered_set<const Node*> fine(order.begin(), order.end());
    const Node* found = nullptr;
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        if (fine.count(node.get()) == 0) found = node.get();
    }
    for_each_child(graph, [&](const Graph& child) { found = found != nullptr ? found : in_a_circle(child); });
    return found;
}

CUresult upload(const std::shared_ptr<Executable>& executable, CUstream handle) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_on_capturing(*stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = map_memory(*executable); result != CUDA_SUCCESS) return result;
    Work work;
    work.after.push_back(executable->last);
    submit(*stream, std::move(work));
    return CUDA_SUCCESS;
}

// Under the lock.
CUresult instantiate(CUgraphExec* made, CUgraph handle, unsigned long long flags, CUgraphNode* error_node,
                     int* reason) {
    constexpr unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                         CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                         CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (made == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    lost_captures::graph_used(*graph);
    if (const Node* const node = in_a_circle(*graph)) {
        if (error_node != nullptr) *error_node = node->handle;
        if (reason != nullptr) *reason = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (const Obstacle found = obstacle_in(*graph); found.error != CUDA_SUCCESS) {
        if (error_node != nullptr && found.node != nullptr) *error_node = found.node->handle;
        if (reason != nullptr) *reason = found.result;
        return found.error;
    }
    auto executable = std::make_shared<Executable>();
    executable->flags = flags;
    executable->graph = copy(*graph, Named::no);
    graph->executable = executable;
    *made = executable->handle = reinterpret_cast<CUgraphExec>(driver_state().executables.add(executable));
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                                       unsigned long long flags) {
    const Inside inside = Inside::to_make(graph);
    FTCUDA_SIM_ENTER(cuGraphInstantiateWithFlags);
    const Guard lock(driver_state().mutex);
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;  // into which stream?
    return instantiate(executable, graph, flags, nullptr, nullptr);
}

FTCUDA_SIM_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                                                 char* log, std::size_t capacity) {
    const Inside inside = Inside::to_make(graph);
    FTCUDA_SIM_ENTER(cuGraphInstantiate_v2);
    const Guard lock(driver_state().mutex);
    if (log != nullptr && capacity != 0) *log = '\0';
    if (error_node != nullptr) *error_node = nullptr;
    return instantiate(executable, graph, 0, error_node, nullptr);
}

FTCUDA_SIM_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                                        CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    const Inside inside = Inside::to_make(graph);
    FTCUDA_SIM_ENTER(cuGraphInstantiateWithParams);
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(driver_state().mutex);
    parameters->hErrNode_out = nullptr;
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    const CUresult result =
        instantiate(executable, graph, parameters->flags, &parameters->hErrNode_out, &parameters->result_out);
    if (result == CUDA_SUCCESS) parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    if (result != CUDA_SUCCESS || (parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0) return result;
    return upload(driver_state().executables.find(*executable), parameters->hUploadStream);
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecGetFlags(CUgraphExec handle, std::uint64_t* flags) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphExecGetFlags);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Executable> executable;
    if (const CUresult result = find_executable(handle, executable); result != CUDA_SUCCESS) return result;
    *flags = executable->flags & ~std::uint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphUpload(CUgraphExec handle, CUstream stream) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphUpload);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Executable> executable;
    if (const CUresult result = find_executable(handle, executable); result != CUDA_SUCCESS) return result;
    return upload(executable, stream);
}

FTCUDA_SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphLaunch);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Executable> executable;
    if (const CUresult result = find_executable(handle, executable); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(stream_handle, stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = forbid_on_capturing(*stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    return launch(executable, *stream);
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec handle) {
    const Inside inside = Inside::to_destroy(handle);
    FTCUDA_SIM_ENTER(cuGraphExecDestroy);
    EndedObjects ended;
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Executable> executable =
        double_destruction::remove(driver_state().executables, handle, "executable graph destroyed");
    if (!executable) return CUDA_ERROR_INVALID_VALUE;
    executable->handle = nullptr;
    for (const std::shared_ptr<Queue>& lane : executable->lanes) {
        lane->closed = true;
        lane->arrived.notify_one();
    }
    end_idle(*executable, ended);
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
