// A graph as the driver's CUgraph: what was captured, from which executables are made.
#pragma once

#include "../device/context.hpp"
#include "../stream/capture_session.hpp"
#include "../stream/graph_turn.hpp"
#include "../sync/lifetime.hpp"
#include "../sync/ref.hpp"
#include "captured_launch.hpp"

namespace ftcuda::core {

class GraphDefinition final : public Shared {
public:
    // Takes the graph over.
    GraphDefinition(Context& context, abi::CUgraph graph, Ref<CapturedOperands> operands) noexcept
        : context_(context), graph_(graph), operands_(std::move(operands)) {}

    Context& context() const noexcept { return context_; }
    // For as long as the graph may be launched.
    Ref<CapturedOperands> operands() const noexcept { return operands_; }

    // Those with parameters, in the order in which they were captured; for as long as the graph may be launched.
    std::vector<const CapturedLaunch*> launches() const;

    // Calls `use(graph)`, a call of the driver, when it is its turn. By who may hold a session's lock.
    template <class Use>
    Status use(Use use) EXCLUDES(graph_turn) {
        const ContextScope scope(context_);
        if (!scope.status().ok()) return scope.status();
        const Lock lock(graph_turn);
        return context_.observe(use(graph_));
    }

    // An executable of it, which is the caller's.
    Status instantiate(unsigned flags, abi::CUgraphExec& executable);
    // As a file for Graphviz.
    Status print_dot(const char* path, unsigned flags);

private:
    ~GraphDefinition() override;

    // Constant after construction.
    Context& context_;
    const abi::CUgraph graph_;
    const Ref<CapturedOperands> operands_;
};

}  // namespace ftcuda::core
