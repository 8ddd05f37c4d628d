// A graph that is launched: the driver's CUgraphExec. Its launches come one after the other, in whatever streams. It
// has what was captured, until it is closed or updated and what was launched before is done. A launch only says in
// which stream: a user object of the driver's would cost each of them two microseconds, and threads the way past each
// other.
#pragma once

#include "../memory/stream_uses.hpp"
#include "../stream/stream.hpp"
#include "../sync/cache_line.hpp"
#include "graph_definition.hpp"

namespace ftcuda::core {

class Graph final : public Shared {
public:
    // `upload`: where its data is moved to the device at once; null: with the first launch.
    static Status instantiate(GraphDefinition& definition, unsigned flags, Stream* upload, Ref<Graph>& graph);

    Context& context() const noexcept { return context_; }
    abi::CUgraphExec cu_graph_exec() const noexcept { return cu_graph_exec_; }

    Status launch(Stream& stream) EXCLUDES(mutex_);
    Status upload(Stream& stream) EXCLUDES(mutex_);
    // Takes the parameters of a graph of the same shape, for launches from now on. `refusal`: why the driver does not,
    // a CUgraphExecUpdateResult; 0 if it does.
    Status update(GraphDefinition& definition, int& refusal) EXCLUDES(mutex_);

    // Idempotent. Launches run on.
    void close() noexcept {
        if (lifetime_.close()) destroy();
    }
    bool is_closed() const noexcept { return lifetime_.is_closing(); }
    bool enter() noexcept { return lifetime_.enter() == 0; }
    void leave() noexcept {
        if (Lifetime::last(lifetime_.leave())) destroy();
    }

private:
    Graph(Context& context, abi::CUgraphExec cu_graph_exec, Ref<CapturedOperands> operands) noexcept
        : context_(context), cu_graph_exec_(cu_graph_exec), operands_(std::move(operands)) {}
    ~Graph() override = default;

    template <class Use>
    Status use_in(Stream& stream, Use use) EXCLUDES(mutex_);
    void destroy() noexcept EXCLUDES(mutex_);
    // When all is done that was launched with them. With the context current, once no launch takes them any more;
    // others may be under way.
    void release_after_launches(Ref<CapturedOperands> operands) noexcept;

    // Constant after construction.
    Context& context_;
    const abi::CUgraphExec cu_graph_exec_;

    // Who holds the lock reads what is above, while others come to the lock, or take leases.
    [[maybe_unused]] LineBetween before_mutex_;

    // The driver wants calls that name it one at a time.
    Mutex mutex_{Rank::executable};
    Ref<CapturedOperands> operands_ GUARDED_BY(mutex_);

    // Synchronise themselves. Where it was launched; and that a launch in a default stream could not be marked.
    StreamUses uses_;
    std::atomic<bool> unordered_{false};

    [[maybe_unused]] LineBetween before_lifetime_;

    // Synchronises itself.
    Lifetime lifetime_;

    [[maybe_unused]] LineBetween after_lifetime_;
};

}  // namespace ftcuda::core
