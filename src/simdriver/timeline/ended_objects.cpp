#include "ended_objects.hpp"

#include "../calls/gate.hpp"

namespace ftcuda::sim {

EndedObjects::~EndedObjects() {
    const InDestructor scope;
    for (const UserObject& object : objects_) object.destroy(object.data);
}

void EndedObjects::graph_is_gone(Graph& graph) {
    forget_names(graph);
    release_all(graph.user_objects);
    for_each_child(graph, [this](Graph& child) { graph_is_gone(child); });
}

void EndedObjects::capture_failed(Graph& graph) {
    graph_is_gone(graph);
    graph.nodes.clear();  // what is in it must not be gone twice, with the graph that it is in
    graph.user_objects.clear();
}

void EndedObjects::release_all(const std::map<CUuserObject, std::uint64_t>& references) {
    for (const auto& [handle, count] : references) {
        release(handle, *driver_state().user_objects.find(handle), count);
    }
}

void EndedObjects::release(CUuserObject handle, UserObject& object, std::uint64_t references) {
    object.references -= references;
    if (object.references != 0) return;
    objects_.push_back(object);
    driver_state().user_objects.remove(handle);
}

}  // namespace ftcuda::sim
