// A graph as the driver's CUgraph: what was captured, from which executables are made.
#pragma once

#include "../device/context.hpp"
#include "../sync/lifetime.hpp"
#include "../sync/ref.hpp"

namespace ftcuda::core {

class GraphDefinition final : public Shared {
public:
    // Takes the graph over.
    GraphDefinition(Context& context, abi::CUgraph graph) noexcept : context_(context), graph_(graph) {}

    Context& context() const noexcept { return context_; }

    // Calls `use(graph)`, a call of the driver: one at a time, as the driver wants all that name one graph. By who may
    // hold a session's lock.
    template <class Use>
    Status use(Use use) EXCLUDES(mutex_) {
        const ContextScope scope(context_);
        if (!scope.status().ok()) return scope.status();
        const Lock lock(mutex_);
        return context_.observe(use(graph_));
    }

    // As a file for Graphviz.
    Status print_dot(const char* path, unsigned flags);

private:
    ~GraphDefinition() override;

    Context& context_;
    Mutex mutex_{Rank::graph};
    const abi::CUgraph graph_;
};

}  // namespace ftcuda::core
