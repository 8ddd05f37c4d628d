// A graph that is launched, as executables of the driver's: one, whose launches come one after the other, in whatever
// streams; or, where who made it said that some may run at once, up to as many, each made when a stream comes for which
// there is none. It has what was captured, until it is closed or updated and what was launched before is done. A launch
// only says in which stream: a user object of the driver's would cost each of them two microseconds, and threads the
// way past each other.
#pragma once

#include "../memory/stream_uses.hpp"
#include "../stream/stream.hpp"
#include "../sync/cache_line.hpp"
#include "../sync/sharded_lifetime.hpp"
#include "graph_definition.hpp"
#include "node_arguments.hpp"
#include "replacement.hpp"

#include <map>
#include <memory>

namespace ftcuda::core {

class Graph final : public Shared {
public:
    // `most`: how many launches may run at once, 1 at least. `upload`: the stream in which its data is moved to the
    // device at once; null: with the first launch.
    static Status instantiate(GraphDefinition& definition, unsigned flags, unsigned most, Stream* upload,
                              Ref<Graph>& graph);

    Context& context() const noexcept { return context_; }
    // The first, which lives as long as the graph.
    abi::CUgraphExec cu_graph_exec() const noexcept { return first_; }
    unsigned most() const noexcept { return most_; }
    // How many executables there are now.
    Status count(unsigned& count) noexcept;
    // Bytes of scratch memory that each has.
    std::size_t scratch_size() const noexcept { return scratch_size_; }

    // What it is made of.
    Status definition(Ref<GraphDefinition>& definition) EXCLUDES(mutex_);

    // As it was captured.
    Status launch(Stream& stream) EXCLUDES(mutex_);
    // With all of so many replacements, or not at all. `operands`: what these use. What other parameters have is as it
    // was in whatever launch came before: who replaces some replaces all, with what was captured if nothing else.
    Status launch(Stream& stream, Replacement* replacements, std::size_t count, Operands operands) EXCLUDES(mutex_);
    Status upload(Stream& stream) EXCLUDES(mutex_);
    // Takes the parameters of a graph of the same shape, for launches from now on. `refusal`: why the driver does not,
    // a CUgraphExecUpdateResult; 0 if it does.
    Status update(GraphDefinition& definition, int& refusal) EXCLUDES(mutex_);

    // One node of the definition that it was made of, in launches from now on. `change` says all that it does.
    Status update(GraphDefinition& of, GraphNode& node, NodeChange& change) EXCLUDES(mutex_, graph_turn);
    Status enable(GraphDefinition& of, GraphNode& node, bool enabled) EXCLUDES(mutex_, graph_turn);
    Status is_enabled(GraphDefinition& of, GraphNode& node, bool& enabled) EXCLUDES(mutex_, graph_turn);

    // Destroys all executables but the first; launches make them anew.
    Status trim() noexcept;

    // Idempotent. Launches run on.
    void close() noexcept {
        if (lifetime_.close()) destroy();
    }
    bool is_closed() const noexcept { return lifetime_.is_closing(); }
    bool enter() noexcept {
        const Entrance entrance = lifetime_.enter();
        if (entrance == Entrance::last) destroy();
        return entrance == Entrance::inside;
    }
    void leave() noexcept {
        if (lifetime_.leave()) destroy();
    }

private:
    // The driver wants calls that name an executable one at a time.
    struct Instance {
        Mutex mutex{Rank::executable};
        abi::CUgraphExec executable GUARDED_BY(mutex) = nullptr;  // null: a launch makes it
        std::vector<NodeArguments> nodes GUARDED_BY(mutex);       // of it, one for each of `launches_`
        Ref<Scratch> scratch GUARDED_BY(mutex);                   // of it; null: it has none, or what was captured
        [[maybe_unused]] LineBetween after;
    };

    // A node that does something else than what it was made to do.
    struct ChangedNode {
        Ref<GraphNode> node;
        bool is_changed = false, is_enabled = true;
        abi::CUgraphNodeParams parameters{};
        GraphNode::Kept kept;
    };

    Graph(GraphDefinition& definition, GraphDefinition::Made made, unsigned flags, unsigned most);
    ~Graph() override = default;

    // Calls `use(executable, nodes)` with the one for `stream`.
    template <class Use>
    Status use_in(Stream& stream, const Operands& operands, Use use) EXCLUDES(mutex_);
    Status launch_with(Stream& stream, abi::CUgraphExec executable, std::vector<NodeArguments>& nodes);
    std::vector<NodeArguments> captured_arguments(const Scratch* scratch) const;
    // By who is inside. Attributes of a launch stay as they were captured.
    bool may_take(const Replacement& replacement) const noexcept;
    // Calls `call()` in the turn of graphs, and with the lock, if `node`, of `of`, may be changed.
    template <class Call>
    Status with_node(GraphDefinition& of, const GraphNode& node, Call call) EXCLUDES(mutex_, graph_turn);
    // Calls `call(executable)` with each that there is. If it fails with a further one, launches make that anew.
    template <class Call>
    Status for_executables(Call call) REQUIRES(mutex_);
    static Status tell(abi::CUgraphExec executable, const ChangedNode& changed) noexcept;
    ChangedNode& changed(GraphNode& node) REQUIRES(mutex_);
    // In the turn of graphs: all that the first executable does becomes what `graph` says, or stays.
    Status update_first(abi::CUgraph graph, abi::CUgraphExecUpdateResultInfo& info) noexcept REQUIRES(mutex_);
    Status enable_disabled(bool enabled) noexcept REQUIRES(mutex_);
    Status make(Instance& instance) EXCLUDES(mutex_, instance.mutex);
    // Those from `index` on. In the turn of graphs, since the driver looks at the graph that they were made of. What
    // they had is to be let go of out of the turn.
    std::vector<Ref<Shared>> destroy_executables(unsigned index);
    void destroy(abi::CUgraphExec executable) noexcept;
    void destroy() noexcept EXCLUDES(mutex_);
    // When all is done that was launched with them. With the context current, once no launch takes them any more;
    // others may be under way.
    void release_after_launches(const Ref<Shared>& operands) noexcept;
    void release_after_launches(const GraphNode::Kept& kept) noexcept;
    void release_after_launches(const std::map<const GraphNode*, ChangedNode>& changed) noexcept;
    void release_after_launches(const std::vector<Ref<Shared>>& gone) noexcept;
    // An event of the context's behind what the event of a use is behind; `capturing` if a capture may have that.
    Status mark_behind(abi::CUevent work, abi::CUevent& event) noexcept;

    // Constant after construction.
    Context& context_;
    const unsigned flags_;
    const unsigned most_;
    const abi::CUgraphExec first_;
    const std::unique_ptr<Instance[]> instances_;
    // Those with parameters or scratch memory: the definition's, which has no successor then.
    const std::vector<const CapturedLaunch*> launches_;
    const std::size_t scratch_size_;
    const Ref<CapturedMemory> memory_;  // null unless it allocates some

    // Who holds the lock reads what is above, while others come to the lock, or take leases.
    [[maybe_unused]] LineBetween before_mutex_;

    Mutex mutex_{Rank::executables};
    // What further executables are made of, and how often it was another one; what that keeps.
    Ref<GraphDefinition> definition_ GUARDED_BY(mutex_);
    std::uint64_t version_ GUARDED_BY(mutex_) = 0;
    Ref<CapturedOperands> operands_ GUARDED_BY(mutex_);
    std::map<const GraphNode*, ChangedNode> changed_ GUARDED_BY(mutex_);

    // Synchronise themselves. Where it was launched; and that a launch in a default stream could not be marked.
    StreamUses uses_;
    std::atomic<bool> unordered_{false};

    [[maybe_unused]] LineBetween before_lifetime_;

    // Synchronises itself. Each launch writes it, unless it is spread.
    ShardedLifetime lifetime_;

    [[maybe_unused]] LineBetween after_lifetime_;
};

}  // namespace ftcuda::core
