// Exports: graphs as pictures, in the language of Graphviz.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../code/module.hpp"
#include "nodes.hpp"

#include <fstream>

namespace ftcuda::sim {

using graph_threads::Inside;

namespace {

std::string label_of(const ConditionalOperation& conditional) {
    const char* const types[] = {"IF", "WHILE", "SWITCH"};
    return std::string("CONDITIONAL\\n") + types[conditional.type];
}

std::string label_of(const Node& node) {
    if (const auto* const conditional = std::get_if<ConditionalOperation>(&node.operation.what))
        return label_of(*conditional);
    if (const auto* const kernel = std::get_if<KernelOperation>(&node.operation.what))
        return "KERNEL\\n" + std::string(entry_of(*kernel->function).name);
    switch (node.operation.type()) {
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST: return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "CHILD_GRAPH";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "EVENT_WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "MEM_ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "MEM_FREE";
    default: return "EMPTY";
    }
}

std::string name_of(const Node& node) { return "\"node_" + std::to_string(node.id) + '"'; }

void print(std::ostream& out, const Graph& graph, int& next) {
    const int number = next++;
    out << "subgraph cluster_" << number << " {\nlabel=\"graph_" << number << "\"\n";
    for (const std::shared_ptr<Node>& node : graph.nodes)
        out << name_of(*node) << " [label=\"" << label_of(*node) << "\"]\n";
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        for (const Node* const next : node->dependents) out << name_of(*node) << " -> " << name_of(*next) << '\n';
    }
    for_each_child(graph, [&](const Graph& child) { print(out, child, next); });
    out << "}\n";
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphDebugDotPrint);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ofstream out(path);
    out << "digraph dot {\n";
    int next = 0;
    print(out, *graph, next);
    out << "}\n";
    if (!out.flush()) return CUDA_ERROR_OPERATING_SYSTEM;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
