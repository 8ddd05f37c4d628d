// Exports: executables that become like another graph.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../timeline/ended_objects.hpp"
#include "executable.hpp"
#include "nodes.hpp"
#include "replacement.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

namespace {

void collect_objects(const Graph& graph, std::map<CUuserObject, std::uint64_t>& all) {
    for (const auto& [handle, references] : graph.user_objects) all[handle] += references;
    for_each_child(graph, [&](const Graph& child) { collect_objects(child, all); });
}

void forget_objects(Graph& graph) {
    graph.user_objects.clear();
    for_each_child(graph, forget_objects);
}

// It keeps what the other graph keeps from here on; what it kept so far, until no launch is left that began before.
void take_over_objects(Executable& executable, const Graph& wanted) {
    std::map<CUuserObject, std::uint64_t> before;
    collect_objects(*executable.graph, before);
    if (!before.empty()) executable.superseded.push_back(std::move(before));
    forget_objects(*executable.graph);
    collect_objects(wanted, executable.graph->user_objects);
    for (const auto& [handle, references] : executable.graph->user_objects)
        driver_state().user_objects.find(handle)->references += references;
}

// How launches begin from here on; the values stay.
void take_over_conditions(Conditions& now, const Conditions& wanted) {
    now.resize(wanted.size());
    for (std::size_t index = 0; index < wanted.size(); ++index) {
        const unsigned value = now[index].value;
        now[index] = wanted[index];
        now[index].value = value;
    }
}

CUresult update(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo& info) {
    EndedObjects ended;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Executable> executable;
    if (const CUresult result = find_executable(handle, executable); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(graph_handle, graph); result != CUDA_SUCCESS) return result;
    const Difference found = compare(*executable->graph, *graph);
    info = {found.result, found.node != nullptr ? found.node->handle : nullptr,
            found.from != nullptr ? found.from->handle : nullptr};
    if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    take_over_all(*executable->graph, *graph);
    take_over_objects(*executable, *graph);
    take_over_conditions(*executable->graph->conditions, *graph->conditions);
    end_idle(*executable, ended);
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph,
                                                CUgraphExecUpdateResultInfo* info) {
    const Inside inside{executable, graph};
    FTCUDA_SIM_ENTER(cuGraphExecUpdate_v2);
    if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return update(executable, graph, *info);
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                                             int* result) {
    const Inside inside{executable, graph};
    FTCUDA_SIM_ENTER(cuGraphExecUpdate);
    if (error_node == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUgraphExecUpdateResultInfo info{};
    const CUresult outcome = update(executable, graph, info);
    *error_node = info.errorNode;
    *result = info.result;
    return outcome;
}

}  // namespace ftcuda::sim
