// Exports: what nodes there are, of which kinds, and the edges between them.
#include "nodes.hpp"

#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../checkers/stale_handles.hpp"
#include "../timeline/ended_objects.hpp"

#include <algorithm>

namespace ftcuda::sim {

using graph_threads::Inside;

CUresult find_graph(CUgraph handle, std::shared_ptr<Graph>& graph) {
    graph = stale_handles::find(driver_state().graphs, handle, "graph");
    return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult find_node(CUgraphNode handle, std::shared_ptr<Node>& node) {
    node = stale_handles::find(driver_state().nodes, handle, "graph node");
    return node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult find_nodes(const CUgraphNode* handles, std::size_t count, const Graph& graph, Nodes& nodes) {
    if (handles == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < count; ++index) {
        std::shared_ptr<Node> node;
        if (const CUresult result = find_node(handles[index], node); result != CUDA_SUCCESS) return result;
        if (node->graph != &graph || std::find(nodes.begin(), nodes.end(), node) != nodes.end())
            return CUDA_ERROR_INVALID_VALUE;
        nodes.push_back(node);
    }
    return CUDA_SUCCESS;
}

CUresult check_edges(const CUgraphEdgeData* edges, std::size_t count) noexcept {
    for (std::size_t index = 0; edges != nullptr && index < count; ++index) {
        const CUgraphEdgeData& edge = edges[index];
        if (edge.from_port != 0 || edge.to_port != 0 || edge.type != 0) return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

namespace {

// Fills an array of the caller's with as many handles as it has room for, and nulls; its length, without an array.
CUresult give(const std::vector<CUgraphNode>& handles, CUgraphNode* to, std::size_t* count) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (to == nullptr) {
        *count = handles.size();
        return CUDA_SUCCESS;
    }
    if (*count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < *count; ++index) to[index] = index < handles.size() ? handles[index] : nullptr;
    *count = std::min(*count, handles.size());
    return CUDA_SUCCESS;
}

CUresult give_edges(CUgraphEdgeData* edges, std::size_t room) {
    for (std::size_t index = 0; edges != nullptr && index < room; ++index) edges[index] = {};
    return CUDA_SUCCESS;
}

std::vector<CUgraphNode> handles_of(const std::vector<Node*>& nodes) {
    std::vector<CUgraphNode> handles;
    for (const Node* const node : nodes) handles.push_back(node->handle);
    return handles;
}

template <class Wanted>
CUresult get_nodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count, Wanted wanted) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    std::vector<CUgraphNode> found;
    for (const std::shared_ptr<Node>& node : graph->nodes) {
        if (wanted(*node)) found.push_back(node->handle);
    }
    return give(found, nodes, count);
}

CUresult get_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges, std::size_t* count) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUgraphNode> begins;
    std::vector<CUgraphNode> ends;
    for (const std::shared_ptr<Node>& node : graph->nodes) {
        for (const Node* const next : node->dependents) {
            begins.push_back(node->handle);
            ends.push_back(next->handle);
        }
    }
    std::size_t room = *count;
    if (from != nullptr) give_edges(edges, room);
    give(begins, from, &room);
    return give(ends, to, count);
}

using Neighbours = std::vector<Node*> Node::*;

CUresult get_neighbours(CUgraphNode handle, Neighbours which, CUgraphNode* nodes, CUgraphEdgeData* edges,
                        std::size_t* count) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Node> node;
    if (const CUresult result = find_node(handle, node); result != CUDA_SUCCESS) return result;
    if (nodes != nullptr && count != nullptr) give_edges(edges, *count);
    return give(handles_of((*node).*which), nodes, count);
}

enum class Edges : unsigned char { added, removed };

CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, std::size_t count, Edges change) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(handle, graph); result != CUDA_SUCCESS) return result;
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (change == Edges::removed && count != 0 && has_memory_nodes(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
    std::vector<std::pair<Node*, Node*>> pairs;
    for (std::size_t index = 0; index < count; ++index) {
        Nodes begin;
        Nodes end;
        if (const CUresult result = find_nodes(&from[index], 1, *graph, begin); result != CUDA_SUCCESS) return result;
        if (const CUresult result = find_nodes(&to[index], 1, *graph, end); result != CUDA_SUCCESS) return result;
        const std::pair<Node*, Node*> pair{begin[0].get(), end[0].get()};
        const bool is_twice = std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
        const bool is_there = are_connected(*pair.first, *pair.second);
        if (pair.first == pair.second || is_twice || is_there != (change == Edges::removed))
            return CUDA_ERROR_INVALID_VALUE;
        pairs.push_back(pair);
    }
    for (const auto& [begin, end] : pairs) {
        if (change == Edges::added) {
            connect(*begin, *end);
        } else {
            disconnect(*begin, *end);
        }
    }
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphGetNodes);
    return get_nodes(graph, nodes, count, [](const Node&) { return true; });
}

FTCUDA_SIM_EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphGetRootNodes);
    return get_nodes(graph, nodes, count, [](const Node& node) { return node.dependencies.empty(); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphGetEdges);
    return get_edges(graph, from, to, nullptr, count);
}

FTCUDA_SIM_EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                                              std::size_t* count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphGetEdges_v2);
    return get_edges(graph, from, to, edges, count);
}

FTCUDA_SIM_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphNodeGetDependencies);
    return get_neighbours(node, &Node::dependencies, nodes, nullptr, count);
}

FTCUDA_SIM_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                                         std::size_t* count) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphNodeGetDependencies_v2);
    return get_neighbours(node, &Node::dependencies, nodes, edges, count);
}

FTCUDA_SIM_EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphNodeGetDependentNodes);
    return get_neighbours(node, &Node::dependents, nodes, nullptr, count);
}

FTCUDA_SIM_EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                                           std::size_t* count) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphNodeGetDependentNodes_v2);
    return get_neighbours(node, &Node::dependents, nodes, edges, count);
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                                  std::size_t count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddDependencies);
    return change_edges(graph, from, to, count, Edges::added);
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                                     const CUgraphEdgeData* edges, std::size_t count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddDependencies_v2);
    if (const CUresult result = check_edges(edges, count); result != CUDA_SUCCESS) return result;
    return change_edges(graph, from, to, count, Edges::added);
}

FTCUDA_SIM_EXPORT CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                                     std::size_t count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphRemoveDependencies);
    return change_edges(graph, from, to, count, Edges::removed);
}

FTCUDA_SIM_EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                                        const CUgraphEdgeData* edges, std::size_t count) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphRemoveDependencies_v2);
    if (const CUresult result = check_edges(edges, count); result != CUDA_SUCCESS) return result;
    return change_edges(graph, from, to, count, Edges::removed);
}

FTCUDA_SIM_EXPORT CUresult cuGraphNodeGetType(CUgraphNode handle, int* type) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphNodeGetType);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Node> node;
    if (const CUresult result = find_node(handle, node); result != CUDA_SUCCESS) return result;
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = node->operation.type();
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphDestroyNode(CUgraphNode handle) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphDestroyNode);
    EndedObjects ended;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Node> node;
    if (const CUresult result = find_node(handle, node); result != CUDA_SUCCESS) return result;
    if (has_memory_nodes(*node->graph)) return CUDA_ERROR_NOT_SUPPORTED;
    remove_node(*node);
    for_each_graph_in(*node, [&](Graph& inner) { ended.graph_is_gone(inner); });
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
