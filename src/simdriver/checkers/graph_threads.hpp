// An oracle for calls of two threads that name one graph, or one executable, at once: the driver leaves it to the
// program to serialise them, all of them, even those that only read. A graph counts with its child graphs and with the
// bodies of its conditional nodes. What destroys a copy, an executable or a graph with copies in it, looks at what was
// copied: an H100 crashes when another thread is there (driver 580).
#pragma once

#include "../state/driver_state.hpp"

#include <initializer_list>

namespace ftcuda::sim::graph_threads {

// Around an exported function, from before the gate: the calling thread is inside what the handles lead to. Takes the
// lock.
class Inside {
public:
    Inside(std::initializer_list<const void*> handles);
    static Inside to_destroy(const void* handle) { return Inside(handle); }
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    explicit Inside(const void* destroyed);
    void enter(std::shared_ptr<const void> place, const char* name);

    std::vector<std::shared_ptr<const void>> entered_;
};

}  // namespace ftcuda::sim::graph_threads
