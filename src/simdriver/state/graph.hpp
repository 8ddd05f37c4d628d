// Graphs: nodes and the edges between them. Under the lock.
#pragma once

#include "driver_state.hpp"
#include "operation.hpp"

namespace ftcuda::sim {

using Nodes = std::vector<std::shared_ptr<Node>>;

struct Node {
    std::uint64_t id = 0;      // never given twice
    std::uint64_t origin = 0;  // the id of the node that this one is a copy of
    CUgraphNode handle = nullptr;
    Graph* graph = nullptr;  // null once it is destroyed
    Operation operation;
    std::vector<Node*> dependencies;
    std::vector<Node*> dependents;
    bool is_enabled = true;    // in an executable
    std::vector<void*> shown;  // where GetParams found the kernel's parameters
};

// A value that kernels set and a conditional node reads. Handles count from 1 in each hierarchy of graphs.
struct Condition {
    Context* context = nullptr;
    unsigned default_value = 0;
    bool assigns_default = false;  // at the begin of each launch; else the value stays as it is
    unsigned value = 0;            // in an executable
};
using Conditions = std::vector<Condition>;

struct Graph {
    CUgraph handle = nullptr;  // null for what an executable has
    Graph* parent = nullptr;   // of a child graph or a body: the one that its node is in
    Nodes nodes;
    std::map<CUuserObject, std::uint64_t> user_objects;                       // how many references it has to each
    std::shared_ptr<Conditions> conditions = std::make_shared<Conditions>();  // of a graph without a parent
    std::weak_ptr<Executable> executable;                                     // the latest
    std::weak_ptr<const Graph> source;  // of a copy: the graph without a parent that the copied one was in
};

// What is launched: a copy of a graph as it was.
struct Executable {
    CUgraphExec handle = nullptr;  // null once it is destroyed
    unsigned long long flags = 0;
    std::shared_ptr<Graph> graph;
    std::vector<std::shared_ptr<Queue>> lanes;                      // beside the stream of a launch, where it branches
    std::vector<std::shared_ptr<Queue>> body_lanes;                 // of the bodies of conditional nodes, in a launch
    Point last;                                                     // behind the latest launch
    std::uint64_t in_flight = 0;                                    // launches
    std::vector<std::map<CUuserObject, std::uint64_t>> superseded;  // of graphs that an update has replaced
};

// In a launch: a node that does something, of the graph or of a child graph, behind others by their indices.
struct Step {
    Node* node = nullptr;
    std::vector<std::size_t> after;
    std::size_t lane = 0;  // 0 is the stream's own queue; no queue orders what the graph does not
};

std::shared_ptr<Graph> make_graph();
// The one that `graph` is in with all its parents: itself without one.
const Graph& root_of(const Graph& graph) noexcept;

// Whether a graph's objects can be named by the program, or belong to an executable.
enum class Named : unsigned char { yes, no };

std::shared_ptr<Node> add_node(Graph& graph, Operation operation, const Nodes& dependencies, Named named = Named::yes);
void remove_node(Node& node);
void connect(Node& from, Node& to);
void disconnect(Node& from, Node& to);
bool are_connected(const Node& from, const Node& to) noexcept;

// The nodes, each behind those that it depends on; fewer than there are when some depend on themselves.
std::vector<Node*> in_order(const Graph& graph);
// Whether everything in `nodes` is in `ends`, or comes before something that is.
bool come_before(const Nodes& nodes, const Nodes& ends);
void add_once(Nodes& to, const Nodes& nodes);

// A copy with the same user objects; each node's origin is the node that it is a copy of.
std::shared_ptr<Graph> copy(const Graph& graph, Named named);
// Whether the graph has nodes that allocate or free memory: such a graph cannot be copied or taken apart.
bool has_memory_nodes(const Graph& graph) noexcept;

// The node of a copy that is one of the node with this id, there or in child graphs; null without one.
Node* find_copy(const Graph& copy, std::uint64_t id) noexcept;
// What a graph and its nodes were called means nothing any more.
void forget_names(Graph& graph);

// The graphs in a node: a child graph, or bodies.
template <class Function>
void for_each_graph_in(const Node& node, Function function) {
    if (const auto* child = std::get_if<ChildOperation>(&node.operation.what)) function(*child->graph);
    if (const auto* conditional = std::get_if<ConditionalOperation>(&node.operation.what)) {
        for (const std::shared_ptr<Graph>& body : conditional->bodies) function(*body);
    }
}

template <class Function>
void for_each_child(const Graph& graph, Function function) {
    for (const std::shared_ptr<Node>& node : graph.nodes) for_each_graph_in(*node, function);
}

}  // namespace ftcuda::sim
