// An oracle for calls of two threads that name one graph, or one executable, at once: the driver leaves it to the
// program to serialise them, all of them, even those that only read. A graph counts with its child graphs and with the
// bodies of its conditional nodes.
#pragma once

#include "../state/driver_state.hpp"

#include <initializer_list>

namespace ftcuda::sim::graph_threads {

// Around an exported function, from before the gate: the calling thread is inside what the handles lead to. Takes the
// lock.
class Inside {
public:
    Inside(std::initializer_list<const void*> handles);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    std::vector<std::shared_ptr<const void>> entered_;
};

}  // namespace ftcuda::sim::graph_threads
