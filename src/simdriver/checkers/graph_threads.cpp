#include "graph_threads.hpp"

#include "../calls/gate.hpp"
#include "../state/graph.hpp"
#include "violations.hpp"

#include <algorithm>

namespace ftcuda::sim::graph_threads {

namespace {

struct Visit {
    std::shared_ptr<const void> place;
    std::uint64_t thread;
    Way way;
};

bool may_meet(Way one, Way other) noexcept {
    return one != Way::names && other != Way::names && (one == Way::sets || other == Way::sets);
}

// Under the driver's lock.
std::vector<Visit>& visits() noexcept {
    static std::vector<Visit>& only = *new std::vector<Visit>;
    return only;
}

std::shared_ptr<const void> hierarchy_of(const Graph* graph) {
    return driver_state().graphs.find(root_of(*graph).handle);
}

// What calls that name the handle must be serialised by; null for one that leads nowhere.
std::shared_ptr<const void> place_of(const void* handle) {
    if (const std::shared_ptr<Graph> graph = driver_state().graphs.find(handle)) return hierarchy_of(graph.get());
    if (const std::shared_ptr<Node> node = driver_state().nodes.find(handle)) return hierarchy_of(node->graph);
    return driver_state().executables.find(handle);
}

const char* name_of(const void* handle) {
    return driver_state().executables.find(handle) ? "executable graph" : "graph";
}

// What a graph and those in it are copies of.
void add_sources(const Graph& graph, std::vector<std::shared_ptr<const void>>& sources) {
    if (std::shared_ptr<const Graph> source = graph.source.lock()) sources.push_back(std::move(source));
    for_each_child(graph, [&](const Graph& child) { add_sources(child, sources); });
}

}  // namespace

Inside::Inside(std::initializer_list<const void*> handles) {
    if (is_forked()) return;
    const Guard lock(driver_state().mutex);
    for (const void* const handle : handles) enter(handle, Way::names);
}

Inside Inside::to_destroy(const void* handle) {
    Inside inside;
    if (is_forked()) return inside;
    const Guard lock(driver_state().mutex);
    inside.enter(handle, Way::names);
    std::vector<std::shared_ptr<const void>> sources;
    const auto executable = driver_state().executables.find(handle);
    if (const std::shared_ptr<Graph> graph = driver_state().graphs.find(handle)) add_sources(*graph, sources);
    if (executable) add_sources(*executable->graph, sources);
    for (std::shared_ptr<const void>& source : sources)
        inside.enter(std::move(source), "graph", executable ? Way::makes : Way::names);
    return inside;
}

Inside Inside::to_make(const void* graph) {
    Inside inside;
    if (is_forked()) return inside;
    const Guard lock(driver_state().mutex);
    inside.enter(graph, Way::makes);
    return inside;
}

Inside Inside::to_set(const void* executable, const void* node) {
    Inside inside;
    if (is_forked()) return inside;
    const Guard lock(driver_state().mutex);
    inside.enter(executable, Way::names);
    inside.enter(node, Way::sets);
    return inside;
}

void Inside::enter(const void* handle, Way way) { enter(place_of(handle), name_of(handle), way); }

void Inside::enter(std::shared_ptr<const void> place, const char* name, Way way) {
    if (!place || std::find(entered_.begin(), entered_.end(), place) != entered_.end()) return;
    const bool shared = std::any_of(visits().begin(), visits().end(), [&](const Visit& visit) {
        return visit.place == place && visit.thread != this_thread() && !may_meet(visit.way, way);
    });
    if (shared) violation(std::string("two threads inside one ") + name + " at once");
    visits().push_back({place, this_thread(), way});
    entered_.push_back(std::move(place));
}

Inside::~Inside() {
    if (entered_.empty()) return;
    const Guard lock(driver_state().mutex);
    for (const std::shared_ptr<const void>& place : entered_) {
        const auto mine = std::find_if(visits().begin(), visits().end(), [&](const Visit& visit) {
            return visit.place == place && visit.thread == this_thread();
        });
        visits().erase(mine);
    }
}

}  // namespace ftcuda::sim::graph_threads
