// What the program gives a graph to keep, and gets back when the graph is gone.
#pragma once

#include "../state/graph.hpp"

namespace ftcuda::sim {

// User objects that nobody has a reference to any more. Declared before the lock: the program's functions are called
// after it, by the thread that let go last, as the driver's threads do. They may not call the driver.
class EndedObjects {
public:
    EndedObjects() noexcept = default;
    ~EndedObjects();
    EndedObjects(const EndedObjects&) = delete;
    EndedObjects& operator=(const EndedObjects&) = delete;

    // Under the lock, all of these.
    void graph_is_gone(Graph& graph);
    // Also one that the capture went into: a body is left without a handle in its node.
    void capture_failed(Graph& graph);
    void release(CUuserObject handle, UserObject& object, std::uint64_t references);
    void release_all(const std::map<CUuserObject, std::uint64_t>& references);

private:
    std::vector<UserObject> objects_;
};

}  // namespace ftcuda::sim
