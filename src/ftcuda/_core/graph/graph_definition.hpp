// A graph as the driver's CUgraph: what was captured, or is built node by node, and from which executables are made; or
// a graph within another one, as a child graph or the body of a conditional node. All calls that name one come in the
// turn of graphs, and so do questions about nodes.
#pragma once

#include "../device/context.hpp"
#include "../stream/capture_session.hpp"
#include "../stream/graph_turn.hpp"
#include "../sync/lifetime.hpp"
#include "../sync/ref.hpp"
#include "captured_launch.hpp"
#include "node_change.hpp"
#include "shared_graphs.hpp"

#include <map>
#include <utility>

namespace ftcuda::core {

class GraphDefinition final : public Shared {
public:
    // An empty one, to which nodes are added.
    static Status create(Context& context, Ref<GraphDefinition>& definition);
    // Takes the graph over.
    GraphDefinition(Context& context, abi::CUgraph graph, Ref<CapturedOperands> captured) noexcept
        : context_(context), root_(*this), captured_(std::move(captured)), graph_(graph), is_there_(true),
          shared_(context) {}

    Context& context() const noexcept { return context_; }
    // The one that it is within, or is within a graph of; itself, if it is in none. Who has one within another keeps
    // the outermost.
    GraphDefinition& root() const noexcept { return root_; }
    // While it is there. It may be gone by then.
    abi::CUgraph cu_graph() const noexcept { return graph_; }
    // For others, who may clone it and launch what they make of it: that keeps what the graph uses (shared_graphs.hpp).
    Status share_cu_graph(abi::CUgraph& graph) EXCLUDES(graph_turn);

    // Those with parameters, in the order in which they were captured; for as long as the graph may be launched. A
    // graph with such launches does not change.
    std::vector<const CapturedLaunch*> launches() const;

    // Calls `use(graph)`, a call of the driver, when it is its turn. By who may hold a session's lock.
    template <class Use>
    Status use(Use use) EXCLUDES(graph_turn) {
        const ContextScope scope(context_);
        if (!scope.status().ok()) return scope.status();
        const Lock lock(graph_turn);
        return context_.observe(use(graph_));
    }
    // In its turn: what is to live as long as what was made of it.
    Ref<CapturedOperands> operands() const REQUIRES(graph_turn);
    // In its turn: whether it allocates memory.
    bool has_memory() const noexcept { return allocates_ || (captured_ && captured_->memory() != nullptr); }
    // In its turn: the graph, for a copy, and what that keeps.
    Status lend(abi::CUgraph& graph, Ref<Shared>& kept) const NOT_ANALYSED;

    // In its turn, while ftcuda makes something of it, which keeps by itself what that uses: it has none of the user
    // objects, which are for others. With one, each launch takes ten microseconds more (H200).
    class Bare {
    public:
        explicit Bare(GraphDefinition* definition);  // null: of nothing
        ~Bare();
        Bare(const Bare&) = delete;
        Bare& operator=(const Bare&) = delete;

    private:
        GraphDefinition* const root_;
        SharedGraphs::All all_;
        std::vector<abi::CUgraph> shared_;
    };

    // An executable of it, which is the caller's, what that keeps, and what its launches allocate, or null. `stays`:
    // further ones will be made, so that the graph does not change until as many calls of may_change().
    struct Made {
        abi::CUgraphExec executable = nullptr;
        Ref<CapturedOperands> operands;
        Ref<CapturedMemory> memory;
    };
    Status instantiate(unsigned flags, bool stays, Made& made) EXCLUDES(graph_turn);
    void may_change() noexcept EXCLUDES(graph_turn);
    // In its turn, the same.
    void stay() noexcept { ++stays_; }
    // As a file for Graphviz.
    Status print_dot(const char* path, unsigned flags) EXCLUDES(graph_turn);

    // Whether nobody has destroyed it, or the node that it is within.
    Status is_there(bool& there) noexcept EXCLUDES(graph_turn);
    Status is_there(const GraphNode& node, bool& there) noexcept EXCLUDES(graph_turn);

    using Nodes = std::vector<Ref<GraphNode>>;
    Status nodes(Nodes& nodes) EXCLUDES(graph_turn);
    using Edge = std::pair<Ref<GraphNode>, Ref<GraphNode>>;
    Status edges(std::vector<Edge>& edges) EXCLUDES(graph_turn);
    // What a node is told to do, and what it keeps; the graphs within it.
    struct NodeState {
        abi::CUgraphNodeParams parameters;
        GraphNode::Kept kept;
        std::vector<Ref<GraphDefinition>> within;
    };
    Status state(const GraphNode& node, NodeState& state) EXCLUDES(graph_turn);

    // A node behind `before`.
    Status add(const Nodes& before, NodeChange& change, Ref<GraphNode>& node) EXCLUDES(graph_turn);
    Status update(GraphNode& node, NodeChange& change) EXCLUDES(graph_turn);
    Status destroy(GraphNode& node) EXCLUDES(graph_turn);
    // Edges from `node` to each of `others`, or to `node` from these. Those that there are, or are not, stay so.
    Status connect(GraphNode& node, bool forward, const Nodes& others) EXCLUDES(graph_turn);
    Status disconnect(GraphNode& node, bool forward, const Nodes& others) EXCLUDES(graph_turn);
    Status create_condition(bool has_default, unsigned value, std::uint64_t& condition) EXCLUDES(graph_turn);

private:
    // Within another one's node.
    GraphDefinition(Context& context, GraphDefinition& root) noexcept
        : context_(context), root_(root), shared_(context) {}
    ~GraphDefinition() override;

    // Calls `call` in the turn of graphs, if the graph is there.
    template <class Call>
    Status in_turn(Call call) EXCLUDES(graph_turn);
    // The same, if it may change.
    template <class Change>
    Status change(Change change) EXCLUDES(graph_turn);

    // What follows is called in the turn of graphs.
    Status cu_nodes(const Nodes& nodes, std::vector<abi::CUgraphNode>& found) const;
    Status node_of(abi::CUgraphNode cu_node, Ref<GraphNode>& node);
    Status read(GraphNode& node) NOT_ANALYSED;
    struct DriverEdges {
        std::vector<abi::CUgraphNode> from, to;
        std::vector<abi::CUgraphEdgeData> data;
    };
    Status driver_edges(DriverEdges& edges) const;
    Status add_node(const Nodes& before, NodeChange& change, Ref<GraphNode>& node);
    // Without graphs of the driver's, until show_within().
    std::vector<Ref<GraphDefinition>> make_within(std::size_t count) const;
    Status show_within(GraphNode& node, const abi::CUgraphNodeParams& parameters);
    Ref<CapturedMemory> memory() const;
    void note_memory(const GraphNode& node);
    void forget_within(const GraphNode& node);
    // With all that is within it. `gone` takes what is to be let go of out of the turn.
    using Gone = std::vector<GraphNode::Kept>;
    void leave(GraphNode& node, Gone& gone);
    void leave(Gone& gone);
    void collect(std::vector<Ref<Shared>>& kept) const;
    SharedGraphs::All all_to_share() const;
    void collect(SharedGraphs::All& all) const;

    // Constant after construction.
    Context& context_;
    GraphDefinition& root_;
    const Ref<CapturedOperands> captured_;  // null within another one

    // In the turn of graphs. The graph is constant but for one within a node, which is made with it.
    abi::CUgraph graph_ = nullptr;
    bool is_there_ = false;
    std::map<abi::CUgraphNode, Ref<GraphNode>> nodes_;  // those that anybody has asked for
    // Of the root: how many made of it want it to stay as it is, and conditions without a node.
    std::size_t stays_ = 0;
    std::size_t unused_conditions_ = 0;
    // Whether nodes allocate memory, and what of it none frees.
    bool allocates_ = false;
    std::vector<abi::CUdeviceptr> unfreed_;
    // Of the root: itself and those within it whose handles others have, and the user objects of what was captured.
    SharedGraphs shared_;
    SharedGraphs::Objects given_;
};

}  // namespace ftcuda::core
