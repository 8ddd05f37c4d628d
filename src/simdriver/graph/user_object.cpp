// Exports: user objects.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../timeline/ended_objects.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

FTCUDA_SIM_EXPORT CUresult cuUserObjectCreate(CUuserObject* object, void* data, CUhostFn destroy, unsigned references,
                                              unsigned flags) {
    FTCUDA_SIM_ENTER(cuUserObjectCreate);
    if (object == nullptr || destroy == nullptr || references == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(driver_state().mutex);
    const auto made = std::make_shared<UserObject>(UserObject{data, destroy, references});
    *object = reinterpret_cast<CUuserObject>(driver_state().user_objects.add(made));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuUserObjectRelease(CUuserObject handle, unsigned references) {
    FTCUDA_SIM_ENTER(cuUserObjectRelease);
    EndedObjects ended;
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<UserObject> object = driver_state().user_objects.find(handle);
    if (!object || references == 0 || references > object->references) return CUDA_ERROR_INVALID_VALUE;
    ended.release(handle, *object, references);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned references,
                                                   unsigned flags) {
    const graph_threads::Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphRetainUserObject);
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Graph> graph = driver_state().graphs.find(handle);
    const std::shared_ptr<UserObject> object = driver_state().user_objects.find(object_handle);
    if (!graph || !object || references == 0 || flags > CU_GRAPH_USER_OBJECT_MOVE) return CUDA_ERROR_INVALID_VALUE;
    for (const std::shared_ptr<Capture>& capture : driver_state().captures) {
        if (capture->graph == graph && capture->invalidated) return CUDA_ERROR_INVALID_VALUE;
    }
    const bool moves = flags == CU_GRAPH_USER_OBJECT_MOVE;
    if (moves && references > object->references) return CUDA_ERROR_INVALID_VALUE;
    if (!moves) object->references += references;
    graph->user_objects[object_handle] += references;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject object, unsigned references) {
    const graph_threads::Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphReleaseUserObject);
    EndedObjects ended;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    const auto found = graph->user_objects.find(object);
    if (found == graph->user_objects.end() || references == 0 || references > found->second)
        return CUDA_ERROR_INVALID_VALUE;
    found->second -= references;
    if (found->second == 0) graph->user_objects.erase(found);
    ended.release(object, *driver_state().user_objects.find(object), references);
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
