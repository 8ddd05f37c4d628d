#include "graph_definition.hpp"

#include "../../_driver/table.hpp"
#include "../completion/deferred_release.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../sync/fork.hpp"
#include "../sync/may_wait.hpp"

namespace ftcuda::core {

using driver::cu;
using namespace abi;

GraphNode::GraphNode(int type) : type_(type) {}
GraphNode::~GraphNode() = default;

SharedGraphs::Kept GraphNode::list(const Kept& kept) {
    SharedGraphs::Kept list;
    for (const Ref<Shared>& each : kept) {
        if (each) list.push_back(each);
    }
    return list;
}

Status GraphDefinition::create(Context& context, Ref<GraphDefinition>& definition) {
    if (!cu.cuGraphGetEdges_v2) return Status(Reason::absent, Entry::cuGraphGetEdges_v2);
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    Ref<CapturedOperands> nothing = Ref<CapturedOperands>::adopt(new CapturedOperands);
    CUgraph graph = nullptr;
    const Status status = context.observe(cu.cuGraphCreate(&graph, 0));
    if (status.ok()) definition = Ref<GraphDefinition>::adopt(new GraphDefinition(context, graph, std::move(nothing)));
    return status;
}

std::vector<const CapturedLaunch*> GraphDefinition::launches() const {
    std::vector<const CapturedLaunch*> launches;
    if (!captured_) return launches;
    for (const Ref<Shared>& note : captured_->notes())
        launches.push_back(static_cast<const CapturedLaunch*>(note.get()));  // nothing else is noted
    return launches;
}

void GraphDefinition::collect(std::vector<Ref<Shared>>& kept) const {
    for (const auto& [cu_node, node] : nodes_) {
        for (const Ref<Shared>& each : node->kept_) {
            if (each) kept.push_back(each);
        }
        for (const Ref<GraphDefinition>& each : node->within_) each->collect(kept);
    }
}

SharedGraphs::All GraphDefinition::all_to_share() const {
    SharedGraphs::All all;
    all.emplace_back(SharedGraphs::Kept{Ref<Shared>(*root_.captured_)}, &root_.given_);
    root_.collect(all);
    return all;
}

void GraphDefinition::collect(SharedGraphs::All& all) const {
    for (const auto& [cu_node, node] : nodes_) {
        all.emplace_back(GraphNode::list(node->kept_), &node->given_);
        for (const Ref<GraphDefinition>& each : node->within_) each->collect(all);
    }
}

Status GraphDefinition::share_cu_graph(CUgraph& shared) {
    return use([&](CUgraph graph) NOT_ANALYSED -> Status {
        if (!is_there_) return Reason::gone;
        shared = graph;
        return root_.shared_.has(graph) ? Status() : root_.shared_.add(graph, all_to_share());
    });
}

GraphDefinition::Bare::Bare(GraphDefinition* definition) : root_(definition != nullptr ? &definition->root_ : nullptr) {
    if (root_ == nullptr || root_->shared_.is_empty()) return;
    all_ = root_->all_to_share();
    shared_ = root_->shared_.end(all_);
}

GraphDefinition::Bare::~Bare() {
    for (CUgraph const each : shared_)
        deferred_errors::add(root_->shared_.add(each, all_), "keep for others what is used by", "a graph");
}

Ref<CapturedOperands> GraphDefinition::operands() const {
    std::vector<Ref<Shared>> kept;
    collect(kept);
    if (kept.empty() && captured_) return captured_;
    return Ref<CapturedOperands>::adopt(new CapturedOperands(captured_, std::move(kept)));
}

Status GraphDefinition::lend(CUgraph& graph, Ref<Shared>& kept) const {
    if (!is_there_) return Reason::gone;
    if (!launches().empty()) return Reason::has_parameters;
    if (has_memory()) return Reason::has_memory;
    graph = graph_;
    kept = Ref<Shared>::adopt(operands().detach());
    return {};
}

Ref<CapturedMemory> GraphDefinition::memory() const {
    if (captured_->memory() != nullptr) return Ref<CapturedMemory>(*captured_->memory());
    if (!allocates_) return {};
    Ref<CapturedMemory> memory = Ref<CapturedMemory>::adopt(new CapturedMemory);
    for (const CUdeviceptr pointer : unfreed_) memory->add(pointer, nullptr);
    return memory;
}

Status GraphDefinition::instantiate(unsigned flags, bool stays, Made& made) {
    const RelaxedCapture relaxed;
    return use([&](CUgraph graph) NOT_ANALYSED {
        if (unused_conditions_ + captured_->unused_conditions() != 0) return Status(Reason::unplaced);
        made.operands = operands();
        made.memory = memory();
        const Bare bare(this);
        const Status status = cu.cuGraphInstantiateWithFlags(&made.executable, graph, flags);
        if (status.ok() && stays) ++stays_;
        return status;
    });
}

void GraphDefinition::may_change() noexcept {
    const Lock lock(graph_turn);
    --stays_;
}

Status GraphDefinition::print_dot(const char* path, unsigned flags) {
    if (!cu.cuGraphDebugDotPrint) return Status(Reason::absent, Entry::cuGraphDebugDotPrint);
    return use([&](CUgraph graph) {
        return is_there_ ? Status(cu.cuGraphDebugDotPrint(graph, path, flags)) : Status(Reason::gone);
    });
}

Status GraphDefinition::is_there(bool& there) noexcept {
    if (const Status status = may_wait(); !status.ok()) return status;
    const Lock lock(graph_turn);
    there = is_there_;
    return {};
}

Status GraphDefinition::is_there(const GraphNode& node, bool& there) noexcept {
    if (const Status status = may_wait(); !status.ok()) return status;
    const Lock lock(graph_turn);
    there = node.is_there_;
    return {};
}

GraphDefinition::~GraphDefinition() {
    if (&root_ != this || !context_.may_destroy()) return;
    const auto destroy = [&context = context_, graph = graph_] {
        const RelaxedCapture relaxed;
        const Lock lock(graph_turn);
        deferred_errors::add(context.observe(cu.cuGraphDestroy(graph)), "destroy", "graph");
    };
    if (!deferred_release::put_off(destroy)) destroy();
}

}  // namespace ftcuda::core
