// The nodes of a graph definition, and the edges between them.
#include "../../_driver/table.hpp"
#include "../device/deferred_errors.hpp"
#include "graph_definition.hpp"

#include <algorithm>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

template <class Call>
Status GraphDefinition::in_turn(Call call) {
    // A graph that was captured by an older driver is looked at by the calls of newer ones.
    if (!cu.cuGraphGetEdges_v2) return Status(Reason::absent, Entry::cuGraphGetEdges_v2);
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(graph_turn);
    if (!is_there_) return Reason::gone;
    return context_.observe(call());
}

template <class Change>
Status GraphDefinition::change(Change change) {
    return in_turn([&]() -> Status {
        if (!root_.launches().empty()) return Reason::has_parameters;
        return root_.stays_ != 0 ? Status(Reason::stays) : change();
    });
}

Status GraphDefinition::cu_nodes(const Nodes& nodes, std::vector<CUgraphNode>& found) const {
    for (const Ref<GraphNode>& each : nodes) {
        if (!each->is_there_) return Reason::gone;
        const auto place = nodes_.find(each->node_);
        if (place == nodes_.end() || place->second.get() != each.get()) return Reason::other_graph;
        found.push_back(each->node_);
    }
    return {};
}

Status GraphDefinition::node_of(CUgraphNode cu_node, Ref<GraphNode>& node) {
    if (const auto place = nodes_.find(cu_node); place != nodes_.end()) {
        node = place->second;
        return {};
    }
    int type = 0;
    if (const Status status = cu.cuGraphNodeGetType(cu_node, &type); !status.ok()) return status;
    Ref<GraphNode> found = Ref<GraphNode>::adopt(new GraphNode(type));
    found->node_ = cu_node;
    if (const Status status = read(*found); !status.ok()) return status;
    found->is_there_ = true;
    nodes_.emplace(cu_node, found);
    node = std::move(found);
    return {};
}

// What somebody else told the driver of a node, as far as it says.
Status GraphDefinition::read(GraphNode& node) {
    CUgraphNodeParams& parameters = node.parameters_;
    parameters.type = node.type_;
    switch (node.type_) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return cu.cuGraphKernelNodeGetParams_v2(node.node_, &parameters.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return cu.cuGraphMemcpyNodeGetParams(node.node_, &parameters.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_HOST: return cu.cuGraphHostNodeGetParams(node.node_, &parameters.host);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return cu.cuGraphMemAllocNodeGetParams(node.node_, &parameters.alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return cu.cuGraphMemFreeNodeGetParams(node.node_, &parameters.free.dptr);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return cu.cuGraphEventRecordNodeGetEvent(node.node_, &parameters.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return cu.cuGraphEventWaitNodeGetEvent(node.node_, &parameters.eventWait.event);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS shape{};
        const Status status = cu.cuGraphMemsetNodeGetParams(node.node_, &shape);
        parameters.memset = {shape.dst,   shape.pitch,  shape.value, shape.elementSize,
                             shape.width, shape.height, nullptr};
        return status;
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: node.within_ = make_within(1); return show_within(node, parameters);
    default: return {};
    }
}

std::vector<Ref<GraphDefinition>> GraphDefinition::make_within(std::size_t count) const {
    std::vector<Ref<GraphDefinition>> within;
    while (within.size() < count) within.push_back(Ref<GraphDefinition>::adopt(new GraphDefinition(context_, root_)));
    return within;
}

Status GraphDefinition::show_within(GraphNode& node, const CUgraphNodeParams& parameters) {
    if (node.type_ == CU_GRAPH_NODE_TYPE_GRAPH) {
        GraphDefinition& child = *node.within_.front();
        const Status status = cu.cuGraphChildGraphNodeGetGraph(node.node_, &child.graph_);
        child.is_there_ = status.ok();
        return status;
    }
    for (std::size_t index = 0; index < node.within_.size(); ++index) {
        node.within_[index]->graph_ = parameters.conditional.phGraph_out[index];
        node.within_[index]->is_there_ = true;
    }
    return {};
}

Status GraphDefinition::nodes(Nodes& nodes) {
    return in_turn([&]() -> Status {
        std::size_t count = 0;
        if (const Status status = cu.cuGraphGetNodes(graph_, nullptr, &count); !status.ok()) return status;
        std::vector<CUgraphNode> found(count);
        if (count != 0) {
            if (const Status status = cu.cuGraphGetNodes(graph_, found.data(), &count); !status.ok()) return status;
        }
        for (CUgraphNode const each : found) {
            nodes.emplace_back();
            if (const Status status = node_of(each, nodes.back()); !status.ok()) return status;
        }
        return {};
    });
}

Status GraphDefinition::driver_edges(DriverEdges& edges) const {
    std::size_t count = 0;
    if (const Status status = cu.cuGraphGetEdges_v2(graph_, nullptr, nullptr, nullptr, &count); !status.ok())
        return status;
    edges.from.resize(count);
    edges.to.resize(count);
    edges.data.resize(count);
    if (count == 0) return {};
    return cu.cuGraphGetEdges_v2(graph_, edges.from.data(), edges.to.data(), edges.data.data(), &count);
}

Status GraphDefinition::edges(std::vector<Edge>& edges) {
    return in_turn([&]() -> Status {
        DriverEdges found;
        if (const Status status = driver_edges(found); !status.ok()) return status;
        for (std::size_t index = 0; index < found.from.size(); ++index) {
            Edge edge;
            if (const Status status = node_of(found.from[index], edge.first); !status.ok()) return status;
            if (const Status status = node_of(found.to[index], edge.second); !status.ok()) return status;
            edges.push_back(std::move(edge));
        }
        return {};
    });
}

Status GraphDefinition::state(const GraphNode& node, NodeState& state) {
    return in_turn([&]() -> Status {
        if (!node.is_there_) return Reason::gone;
        state = {node.parameters_, node.kept_, node.within_};
        return {};
    });
}

Status GraphDefinition::add(const Nodes& before, NodeChange& change, Ref<GraphNode>& node) {
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    if (const Status status = change.prepare(context_); !status.ok()) return status;
    return this->change([&] { return add_node(before, change, node); });
}

Status GraphDefinition::add_node(const Nodes& before, NodeChange& change, Ref<GraphNode>& node) {
    std::vector<CUgraphNode> dependencies;
    if (const Status status = cu_nodes(before, dependencies); !status.ok()) return status;
    // What can fail comes before the node, which nobody could take out again.
    Ref<GraphNode> made = Ref<GraphNode>::adopt(new GraphNode(change.type()));
    made->within_ = make_within(change.within());
    std::map<CUgraphNode, Ref<GraphNode>> entry;
    entry.emplace(nullptr, made);
    CUgraphNodeParams& parameters = made->parameters_;
    parameters.type = change.type();
    if (const Status status = change.apply(context_, parameters, made->kept_); !status.ok()) return status;
    Gift gift(root_.shared_);
    if (const Status status = gift.give(GraphNode::list(made->kept_)); !status.ok()) return status;
    const CapturedMemory* const of_buffers = root_.captured_->memory();
    if (change.type() == CU_GRAPH_NODE_TYPE_MEM_FREE && of_buffers != nullptr &&
        of_buffers->find(parameters.free.dptr) != nullptr)
        return Reason::memory_of_buffer;
    const Bare bare(change.source());
    CUgraphNodeParams told = parameters;  // the driver writes to it
    const Status status = cu.cuGraphAddNode(&made->node_, graph_, dependencies.data(), dependencies.size(), &told);
    if (!status.ok()) return status;
    if (const Status shown = show_within(*made, told); !shown.ok()) {
        deferred_errors::add(context_.observe(cu.cuGraphDestroyNode(made->node_)), "take out again", "node");
        return shown;
    }
    made->is_there_ = true;
    gift.exchange(made->given_);
    auto kept = entry.extract(entry.begin());
    kept.key() = made->node_;
    nodes_.insert(std::move(kept));
    if (change.type() == CU_GRAPH_NODE_TYPE_MEM_ALLOC) parameters.alloc.dptr = told.alloc.dptr;
    if (change.type() == CU_GRAPH_NODE_TYPE_CONDITIONAL) --root_.unused_conditions_;
    note_memory(*made);
    node = made;
    return {};
}

void GraphDefinition::note_memory(const GraphNode& node) {
    if (node.type_ == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        allocates_ = true;
        unfreed_.push_back(node.parameters_.alloc.dptr);
    } else if (node.type_ == CU_GRAPH_NODE_TYPE_MEM_FREE) {
        unfreed_.erase(std::remove(unfreed_.begin(), unfreed_.end(), node.parameters_.free.dptr), unfreed_.end());
    }
}

Status GraphDefinition::update(GraphNode& node, NodeChange& change) {
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    if (const Status status = change.prepare(context_); !status.ok()) return status;
    GraphNode::Kept kept;  // in place of what goes with it, out of the turn
    Gone gone;
    return this->change([&]() -> Status {
        if (!node.is_there_) return Reason::gone;
        CUgraphNodeParams parameters = node.parameters_;
        kept = node.kept_;
        if (node.type_ == CU_GRAPH_NODE_TYPE_KERNEL) {  // whose arguments only the driver has for certain
            CUDA_KERNEL_NODE_PARAMS_v2 now{};
            if (const Status status = cu.cuGraphKernelNodeGetParams_v2(node.node_, &now); !status.ok()) return status;
            parameters.kernel.kernelParams = now.kernelParams;
            parameters.kernel.extra = now.extra;
        }
        if (const Status status = change.apply(context_, parameters, kept); !status.ok()) return status;
        Gift gift(root_.shared_);
        if (const Status status = gift.give(GraphNode::list(kept)); !status.ok()) return status;
        std::vector<Ref<GraphDefinition>> within = make_within(change.within());
        const Bare bare(change.source());
        CUgraphNodeParams told = parameters;
        if (const Status status = cu.cuGraphNodeSetParams(node.node_, &told); !status.ok()) return status;
        node.parameters_ = parameters;
        std::swap(node.kept_, kept);
        gift.exchange(node.given_);
        if (within.empty()) return {};
        forget_within(node);
        for (const Ref<GraphDefinition>& each : node.within_) each->leave(gone);
        std::swap(node.within_, within);
        deferred_errors::add(show_within(node, told), "find", "the graph within a node");  // which is updated
        return {};
    });
}

// All of them before anything is taken back from any: the driver has destroyed them.
void GraphDefinition::forget_within(const GraphNode& node) {
    for (const Ref<GraphDefinition>& each : node.within_) {
        root_.shared_.remove(each->graph_);
        for (const auto& [cu_node, inner] : each->nodes_) each->forget_within(*inner);
    }
}

void GraphDefinition::leave(GraphNode& node, Gone& gone) {
    node.is_there_ = false;
    if (node.type_ == CU_GRAPH_NODE_TYPE_CONDITIONAL) ++root_.unused_conditions_;
    for (const Ref<GraphDefinition>& each : node.within_) each->leave(gone);
    root_.shared_.take_back(node.given_);
    gone.emplace_back();
    std::swap(gone.back(), node.kept_);
}

void GraphDefinition::leave(Gone& gone) {
    is_there_ = false;
    for (const auto& [cu_node, node] : nodes_) leave(*node, gone);
    nodes_.clear();
}

Status GraphDefinition::destroy(GraphNode& node) {
    Gone gone;
    const Status status = change([&]() -> Status {
        if (!node.is_there_) return Reason::gone;
        if (const Status status = cu.cuGraphDestroyNode(node.node_); !status.ok()) return status;
        forget_within(node);
        leave(node, gone);
        nodes_.erase(node.node_);
        return {};
    });
    return status.reason() == Reason::gone ? Status() : status;
}

Status GraphDefinition::connect(GraphNode& node, bool forward, const Nodes& others) {
    return change([&]() -> Status {
        std::vector<CUgraphNode> mine, wanted;
        if (const Status status = cu_nodes({Ref<GraphNode>(node)}, mine); !status.ok()) return status;
        if (const Status status = cu_nodes(others, wanted); !status.ok()) return status;
        DriverEdges found;
        if (const Status status = driver_edges(found); !status.ok()) return status;
        for (std::size_t index = 0; index < found.from.size(); ++index) {
            if ((forward ? found.from : found.to)[index] != mine.front()) continue;
            CUgraphNode const other = (forward ? found.to : found.from)[index];
            wanted.erase(std::remove(wanted.begin(), wanted.end(), other), wanted.end());
        }
        std::sort(wanted.begin(), wanted.end());
        wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
        if (wanted.empty()) return {};
        mine.assign(wanted.size(), mine.front());
        const std::vector<CUgraphNode>& from = forward ? mine : wanted;
        const std::vector<CUgraphNode>& to = forward ? wanted : mine;
        return cu.cuGraphAddDependencies_v2(graph_, from.data(), to.data(), nullptr, from.size());
    });
}

Status GraphDefinition::disconnect(GraphNode& node, bool forward, const Nodes& others) {
    return change([&]() -> Status {
        std::vector<CUgraphNode> mine, wanted;
        if (const Status status = cu_nodes({Ref<GraphNode>(node)}, mine); !status.ok()) return status;
        if (const Status status = cu_nodes(others, wanted); !status.ok()) return status;
        DriverEdges found, removed;
        if (const Status status = driver_edges(found); !status.ok()) return status;
        for (std::size_t index = 0; index < found.from.size(); ++index) {
            if ((forward ? found.from : found.to)[index] != mine.front()) continue;
            CUgraphNode const other = (forward ? found.to : found.from)[index];
            if (std::find(wanted.begin(), wanted.end(), other) == wanted.end()) continue;
            removed.from.push_back(found.from[index]);
            removed.to.push_back(found.to[index]);
            removed.data.push_back(found.data[index]);
        }
        if (removed.from.empty()) return {};
        return cu.cuGraphRemoveDependencies_v2(graph_, removed.from.data(), removed.to.data(), removed.data.data(),
                                               removed.from.size());
    });
}

Status GraphDefinition::create_condition(bool has_default, unsigned value, std::uint64_t& condition) {
    if (!cu.cuGraphConditionalHandleCreate) return Status(Reason::absent, Entry::cuGraphConditionalHandleCreate);
    return change([&] {
        const Status made =
            cu.cuGraphConditionalHandleCreate(&condition, graph_, context_.cu_context(), value,
                                              has_default ? unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT} : 0U);
        if (made.ok()) ++root_.unused_conditions_;
        return made;
    });
}

}  // namespace ftcuda::core
