// Exports: graphs as a whole.
#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../checkers/graph_threads.hpp"
#include "../timeline/ended_objects.hpp"
#include "conditional.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

FTCUDA_SIM_EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
    FTCUDA_SIM_ENTER(cuGraphCreate);
    if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(driver_state().mutex);
    *graph = make_graph()->handle;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphDestroy(CUgraph handle) {
    const Inside inside = Inside::to_destroy(handle);
    FTCUDA_SIM_ENTER(cuGraphDestroy);
    EndedObjects ended;
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Graph> graph = driver_state().graphs.find(handle);
    if (!graph) double_destruction::report("graph destroyed that does not exist");
    if (!graph || graph->parent != nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const std::shared_ptr<Capture>& capture : driver_state().captures) {
        if (capture->graph == graph) return CUDA_ERROR_INVALID_VALUE;
    }
    ended.graph_is_gone(*graph);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphClone(CUgraph* clone, CUgraph handle) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphClone);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    if (has_conditions(*graph) || has_memory_nodes(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
    *clone = copy(*graph, Named::yes)->handle;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph clone) {
    const Inside inside{original, clone};
    FTCUDA_SIM_ENTER(cuGraphNodeFindInClone);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Node> node;
    if (const CUresult result = find_node(original, node); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(clone, graph); result != CUDA_SUCCESS) return result;
    const Node* const twin = find_copy(*graph, node->id);
    if (twin == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *found = twin->handle;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
