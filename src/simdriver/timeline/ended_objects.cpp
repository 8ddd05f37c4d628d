#include "ended_objects.hpp"

#include "../calls/gate.hpp"

namespace ftcuda::sim {

EndedObjects::~EndedObjects() {
    const InDestructor scope;
    for (const UserObject& object : objects_) object.destroy(object.data);
}

void EndedObjects::graph_is_gone(const Graph& graph) {
    for (const auto& [handle, references] : graph.user_objects) {
        release(handle, *driver_state().user_objects.find(handle), references);
    }
}

void EndedObjects::release(CUuserObject handle, UserObject& object, std::uint64_t references) {
    object.references -= references;
    if (object.references != 0) return;
    objects_.push_back(object);
    driver_state().user_objects.remove(handle);
}

}  // namespace ftcuda::sim
