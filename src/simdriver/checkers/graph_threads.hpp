// An oracle for calls of two threads that name one graph, or one executable, at once: the driver leaves it to the
// program to serialise them, all of them, even those that only read. A graph counts with its child graphs and with the
// bodies of its conditional nodes. What destroys a copy, an executable or a graph with copies in it, looks at what was
// copied: an H100 crashes when another thread is there (driver 580). It does not when threads set the parameters of
// executables of one graph, each of its own, and others make such executables or destroy them meanwhile.
#pragma once

#include "../state/driver_state.hpp"

#include <initializer_list>

namespace ftcuda::sim::graph_threads {

// What a call is about in what it names: with a graph that two threads name, makes and sets go together, and sets too.
enum class Way : unsigned char { names, makes, sets };

// Around an exported function, from before the gate: the calling thread is inside what the handles lead to. Takes the
// lock.
class Inside {
public:
    Inside(std::initializer_list<const void*> handles);
    static Inside to_destroy(const void* handle);
    // An executable of the graph; or what a node of an executable has.
    static Inside to_make(const void* graph);
    static Inside to_set(const void* executable, const void* node);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    Inside() = default;
    Inside(Inside&&) = default;
    void enter(const void* handle, Way way);
    void enter(std::shared_ptr<const void> place, const char* name, Way way);

    std::vector<std::shared_ptr<const void>> entered_;
};

}  // namespace ftcuda::sim::graph_threads
