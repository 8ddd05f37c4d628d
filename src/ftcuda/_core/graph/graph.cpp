#include "graph.hpp"

#include "../../_driver/table.hpp"
#include "../completion/deferred_release.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../sync/may_wait.hpp"

#include <algorithm>
#include <utility>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

void put(NodeArguments& node, std::size_t index, const Replacement& replacement) noexcept {
    if (index == CapturedLaunch::Parameter::shape) node.put(replacement.shape);
    else node.put(index, replacement.bytes);
}

deferred_release::Retention retained(const Ref<Shared>& operands) {
    deferred_release::Retention retention;
    deferred_release::retain(retention, operands);
    return retention;
}

}  // namespace

Graph::Graph(GraphDefinition& definition, GraphDefinition::Made made, unsigned flags, unsigned most)
    : context_(definition.context()), flags_(flags), most_(most), first_(made.executable),
      instances_(new Instance[most]), launches_(definition.launches()), scratch_size_(Scratch::size(launches_)),
      memory_(std::move(made.memory)), definition_(definition), operands_(std::move(made.operands)) {
    const Lock lock(instances_[0].mutex);
    instances_[0].executable = first_;
    instances_[0].nodes = captured_arguments(nullptr);
}

std::vector<NodeArguments> Graph::captured_arguments(const Scratch* scratch) const {
    std::vector<NodeArguments> arguments;
    for (const CapturedLaunch* const launch : launches_) arguments.emplace_back(*launch, scratch);
    return arguments;
}

Status Graph::instantiate(GraphDefinition& definition, unsigned flags, unsigned most, Stream* upload,
                          Ref<Graph>& graph) {
    if (!cu.cuGraphInstantiateWithFlags) return Status(Reason::absent, Entry::cuGraphInstantiateWithFlags);
    GraphDefinition::Made made;
    Status status = definition.instantiate(flags, most > 1, made);
    const bool may_be_second = made.memory && (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0;
    if (may_be_second && status.is(CUDA_ERROR_NOT_SUPPORTED)) return Reason::only_instance;
    if (!status.ok()) return status;
    Ref<Graph> mine = Ref<Graph>::adopt(new Graph(definition, std::move(made), flags, most));
    if (most > 1) status = mine->make(mine->instances_[1]);  // at once: of some graphs the driver makes no second one
    if (status.is(CUDA_ERROR_NOT_SUPPORTED)) status = Reason::only_instance;
    if (status.ok() && upload != nullptr) status = mine->upload(*upload);
    if (!status.ok()) {
        mine->close();
        return status;
    }
    graph = std::move(mine);
    return {};
}

Status Graph::count(unsigned& count) noexcept {
    if (const Status status = may_wait(); !status.ok()) return status;
    count = 0;
    for (unsigned index = 0; index < most_; ++index) {
        const Lock lock(instances_[index].mutex);
        count += instances_[index].executable != nullptr;
    }
    return {};
}

Status Graph::definition(Ref<GraphDefinition>& definition) {
    if (const Status status = may_wait(); !status.ok()) return status;
    const Lock lock(mutex_);
    if (!definition_) return Reason::closed;
    definition = definition_;
    return {};
}

Status Graph::make(Instance& instance) {
    Ref<GraphDefinition> definition;
    std::uint64_t version = 0;
    {
        const Lock lock(mutex_);
        definition = definition_;
        version = version_;
    }
    Ref<Scratch> scratch;
    Status status = Scratch::allocate(context_, launches_, scratch);
    if (!status.ok()) return status;
    GraphDefinition::Made further;  // which keeps what the first one does
    status = definition->instantiate(flags_, false, further);
    if (!status.ok()) return status;
    CUgraphExec made = further.executable;
    std::vector<NodeArguments> nodes = captured_arguments(scratch.get());
    const RelaxedCapture relaxed;
    const ContextScope scope(context_);
    const Lock turn(graph_turn);
    {
        const Lock lock(mutex_);
        const Lock instance_lock(instance.mutex);
        for (const auto& [node, changed] : changed_) {
            if (status.ok()) status = context_.observe(tell(made, changed));
        }
        if (status.ok() && version == version_ && instance.executable == nullptr) {
            std::swap(instance.executable, made);
            std::swap(instance.nodes, nodes);
            std::swap(instance.scratch, scratch);
        }
    }
    if (made != nullptr) destroy(made);  // it failed, another thread was first, or the graph was updated
    if (scratch) release_after_launches(Ref<Shared>(*scratch));  // perhaps of an executable that was there before
    return status;
}

Status Graph::tell(CUgraphExec executable, const ChangedNode& changed) noexcept {
    CUgraphNode const node = changed.node->cu_node();
    if (changed.is_changed) {
        CUgraphNodeParams told = changed.parameters;
        if (const Status status = cu.cuGraphExecNodeSetParams(executable, node, &told); !status.ok()) return status;
    }
    return changed.is_enabled ? Status() : Status(cu.cuGraphNodeSetEnabled(executable, node, 0));
}

template <class Call>
Status Graph::with_node(GraphDefinition& of, const GraphNode& node, Call call) {
    if (!cu.cuGraphExecNodeSetParams) return Status(Reason::absent, Entry::cuGraphExecNodeSetParams);
    const Lease<Graph> lease(*this);
    if (!lease) return Reason::closed;
    const RelaxedCapture relaxed;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock turn(graph_turn);
    const Lock lock(mutex_);
    if (version_ != 0) return Reason::updated;
    if (&of != definition_.get()) return Reason::other_graph;
    if (!node.is_there()) return Reason::gone;
    return context_.observe(call());
}

template <class Call>
Status Graph::for_executables(Call call) {
    for (unsigned index = 0; index < most_; ++index) {
        Instance& instance = instances_[index];
        const Lock lock(instance.mutex);
        if (instance.executable == nullptr) continue;
        const Status status = call(instance.executable);
        if (index == 0 && !status.ok()) return status;
        if (!status.ok()) {  // the others have it
            destroy(std::exchange(instance.executable, nullptr));
            instance.nodes.clear();
        }
    }
    return {};
}

Status Graph::update(GraphDefinition& of, GraphNode& node, NodeChange& change) {
    // Until what was kept is let go of: the end of the graph forgets where it was launched.
    const Lease<Graph> lease(*this);
    if (!lease) return Reason::closed;
    const RelaxedCapture relaxed;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    if (const Status status = change.prepare(context_); !status.ok()) return status;
    GraphNode::Kept kept;
    const Status status = with_node(of, node, [&]() NOT_ANALYSED -> Status {
        const auto has_parameters = [&](const CapturedLaunch* each) { return each->node() == node.cu_node(); };
        if (std::any_of(launches_.begin(), launches_.end(), has_parameters)) return Reason::has_parameters;
        CUgraphNodeParams parameters{};
        parameters.type = change.type();
        if (const Status applied = change.apply(context_, parameters, kept); !applied.ok()) return applied;
        const GraphDefinition::Bare bare(change.source());
        ChangedNode& changed = this->changed(node);
        const Status told = for_executables([&](CUgraphExec executable) {
            CUgraphNodeParams given = parameters;  // the driver writes to it
            return Status(cu.cuGraphExecNodeSetParams(executable, node.cu_node(), &given));
        });
        if (!told.ok()) return told;
        changed.is_changed = true;
        changed.parameters = parameters;
        std::swap(changed.kept, kept);
        return {};
    });
    release_after_launches(kept);
    return status;
}

Graph::ChangedNode& Graph::changed(GraphNode& node) {
    ChangedNode& changed = changed_[&node];
    if (!changed.node) changed.node = Ref<GraphNode>(node);
    return changed;
}

Status Graph::enable(GraphDefinition& of, GraphNode& node, bool enabled) {
    return with_node(of, node, [&]() NOT_ANALYSED -> Status {
        ChangedNode& changed = this->changed(node);
        const Status told = for_executables([&](CUgraphExec executable) {
            return Status(cu.cuGraphNodeSetEnabled(executable, node.cu_node(), enabled ? 1 : 0));
        });
        if (told.ok()) changed.is_enabled = enabled;
        return told;
    });
}

Status Graph::is_enabled(GraphDefinition& of, GraphNode& node, bool& enabled) {
    return with_node(of, node, [&]() NOT_ANALYSED -> Status {
        const auto found = changed_.find(&node);
        enabled = found == changed_.end() || found->second.is_enabled;
        return {};
    });
}

template <class Use>
Status Graph::use_in(Stream& stream, const Operands& operands, Use use) {
    if (&stream.context() != &context_) return Reason::wrong_device;
    const Submission submission(stream);
    if (!submission.status().ok()) return submission.status();
    const Lease<Graph> lease(*this);
    if (!lease) return Reason::closed;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    bool capturing = false;  // which a launch would spoil
    if (const Status status = stream.is_capturing(capturing); !status.ok()) return status;
    if (capturing) return Reason::capturing;
    OperandLeases leases(stream, operands);
    if (!leases.status().ok()) return leases.status();
    Instance& instance = instances_[uses_.add(stream, stream.id()) % most_];
    for (;;) {
        {
            const Lock lock(instance.mutex);
            if (instance.executable != nullptr) {
                const auto use_locked = [&]() NOT_ANALYSED { return use(instance.executable, instance.nodes); };
                const Status status = leases.submit_uncaptured(use_locked);
                if (stream.is_default() && !uses_.mark(stream, "launch of a graph"))
                    unordered_.store(true, std::memory_order_relaxed);
                return status;
            }
        }
        if (const Status status = make(instance); !status.ok()) return status;
    }
}

Status Graph::launch_with(Stream& stream, CUgraphExec executable, std::vector<NodeArguments>& nodes) {
    for (NodeArguments& each : nodes) {
        if (const Status status = each.tell(context_, executable); !status.ok()) return status;
    }
    const driver::Status status = cu.cuGraphLaunch(executable, stream.cu_stream());
    if (!memory_) return status;
    if (status.ok()) memory_->note_launch();
    const bool keeps_memory = !memory_->is_freed_by_launches() && memory_->was_launched();
    const bool is_unfreed = keeps_memory && (flags_ & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0;
    if (is_unfreed && Status(status).is(CUDA_ERROR_INVALID_VALUE)) return Reason::unfreed;
    return status;
}

Status Graph::launch(Stream& stream) {
    return use_in(stream, {}, [&](CUgraphExec executable, std::vector<NodeArguments>& nodes) {
        for (NodeArguments& each : nodes) each.reset();
        return launch_with(stream, executable, nodes);
    });
}

bool Graph::may_take(const Replacement& replacement) const noexcept {
    return replacement.shape == nullptr ||
           std::all_of(replacement.places, replacement.places + replacement.count,
                       [&](const Replacement::Place& place) {
                           return replacement.shape->has_attributes_of(launches_[place.launch]->shape());
                       });
}

Status Graph::launch(Stream& stream, Replacement* replacements, std::size_t count, Operands operands) {
    const ReadReplacedMaps read(replacements, count, operands);
    return use_in(stream, read.operands(), [&](CUgraphExec executable, std::vector<NodeArguments>& nodes) {
        for (std::size_t index = 0; index < count; ++index) {
            const Replacement& each = replacements[index];
            if (!may_take(each)) return Status(Reason::other_attributes);
            for (const Replacement::Place* place = each.places; place != each.places + each.count; ++place)
                put(nodes[place->launch], place->index, each);
        }
        return launch_with(stream, executable, nodes);
    });
}

Status Graph::upload(Stream& stream) {
    return use_in(stream, {}, [&](CUgraphExec executable, const std::vector<NodeArguments>&) {
        return cu.cuGraphUpload(executable, stream.cu_stream());
    });
}

// The driver leaves out what was left out, whatever graph it is told of; a new executable has every node.
Status Graph::update_first(CUgraph graph, CUgraphExecUpdateResultInfo& info) noexcept {
    const Lock lock(instances_[0].mutex);
    Status status = enable_disabled(true);
    if (status.ok()) status = Status(cu.cuGraphExecUpdate_v2(first_, graph, &info));
    if (status.ok()) return status;
    const Status taken_back = context_.observe(enable_disabled(false));
    if (taken_back.reason() == Reason::driver) deferred_errors::add(taken_back, "disable", "node again");
    return status;
}

Status Graph::enable_disabled(bool enabled) noexcept {
    for (const auto& [node, changed] : changed_) {
        if (changed.is_enabled) continue;
        if (!node->is_there()) return Reason::gone;
        const Status status = Status(cu.cuGraphNodeSetEnabled(first_, node->cu_node(), enabled ? 1 : 0));
        if (!status.ok()) return status;
    }
    return {};
}

Status Graph::update(GraphDefinition& definition, int& refusal) {
    refusal = 0;
    if (!cu.cuGraphExecUpdate_v2) return Status(Reason::absent, Entry::cuGraphExecUpdate_v2);
    if (&definition.context() != &context_) return Reason::wrong_device;
    if (!launches_.empty() || !definition.launches().empty()) return Reason::has_parameters;
    const Lease<Graph> lease(*this);
    if (!lease) return Reason::closed;
    CUgraphExecUpdateResultInfo info{};
    Ref<GraphDefinition> old;
    Ref<CapturedOperands> operands;
    std::map<const GraphNode*, ChangedNode> changed;
    const RelaxedCapture relaxed;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Status status = definition.use([&](CUgraph graph) NOT_ANALYSED {
        const Lock lock(mutex_);
        // Buffers know whether the graph was launched that allocates them.
        if (&definition != definition_.get() && (memory_ || definition.has_memory())) return Status(Reason::has_memory);
        operands = definition.operands();
        const GraphDefinition::Bare bare(&definition);
        if (const Status updated = update_first(graph, info); !updated.ok()) return updated;
        old = std::exchange(definition_, Ref<GraphDefinition>(definition));
        if (most_ > 1) definition.stay();
        ++version_;
        std::swap(operands_, operands);
        std::swap(changed_, changed);
        destroy_executables(1);  // which have no scratch memory; launches make them of the new one
        return Status();
    });
    if (!status.ok()) {
        refusal = info.result;
        return status;
    }
    if (most_ > 1) old->may_change();
    release_after_launches(Ref<Shared>(*operands));
    release_after_launches(changed);
    return {};
}

Status Graph::trim() noexcept {
    const Lease<Graph> lease(*this);
    if (!lease) return Reason::closed;
    const RelaxedCapture relaxed;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    std::vector<Ref<Shared>> gone;
    {
        const Lock turn(graph_turn);
        gone = destroy_executables(1);
    }
    release_after_launches(gone);
    return {};
}

std::vector<Ref<Shared>> Graph::destroy_executables(unsigned index) {
    std::vector<Ref<Shared>> gone;
    for (; index < most_; ++index) {
        Instance& instance = instances_[index];
        const Lock lock(instance.mutex);
        if (instance.executable != nullptr) destroy(std::exchange(instance.executable, nullptr));
        instance.nodes.clear();
        if (instance.scratch) gone.push_back(Ref<Shared>::adopt(instance.scratch.detach()));
    }
    return gone;
}

void Graph::destroy(CUgraphExec executable) noexcept {
    deferred_errors::add(context_.observe(cu.cuGraphExecDestroy(executable)), "destroy", "graph");
}

void Graph::release_after_launches(const std::map<const GraphNode*, ChangedNode>& changed) noexcept {
    for (const auto& [node, each] : changed) release_after_launches(each.kept);
}

void Graph::release_after_launches(const std::vector<Ref<Shared>>& gone) noexcept {
    for (const Ref<Shared>& each : gone) release_after_launches(each);
}

void Graph::release_after_launches(const GraphNode::Kept& kept) noexcept {
    for (const Ref<Shared>& each : kept) {
        if (each) release_after_launches(each);
    }
}

void Graph::release_after_launches(const Ref<Shared>& operands) noexcept {
    if (unordered_.load(std::memory_order_relaxed)) {
        deferred_release::release_when_idle(context_, retained(operands));
        return;
    }
    uses_.visit([&](Use& use, std::uint64_t) {
        if (use.event != nullptr ? context_.is_reached(use.event) : use.stream->is_finished()) return;
        if (use.event == nullptr) return use.stream->retain_until_done(retained(operands));
        CUevent event = nullptr;
        const Status status = mark_behind(use.event, event);
        if (status.ok()) return deferred_release::release_after(context_, event, retained(operands));
        if (status.reason() != Reason::capturing) deferred_errors::add(status, "retain", "a graph");
        deferred_release::release_when_idle(context_, retained(operands));
    });
}

// A default stream may be another thread's, which this one cannot name: a stream of ours waits for its event.
Status Graph::mark_behind(CUevent work, CUevent& event) noexcept {
    CUstream stream = nullptr;
    if (const Status status = context_.housekeeping_stream(stream); !status.ok()) return status;
    const Status status = context_.observe(cu.cuStreamWaitEvent(stream, work, 0));
    if (is_of_capture(status)) return Reason::capturing;
    return status.ok() ? context_.record(stream, event) : status;
}

void Graph::destroy() noexcept {
    if (!context_.may_destroy()) return;
    if (deferred_release::put_off([self = Ref<Graph>(*this)] { self->destroy(); })) return;
    const RelaxedCapture relaxed;
    const ContextScope scope(context_);
    Ref<GraphDefinition> definition;
    Ref<CapturedOperands> operands;
    std::map<const GraphNode*, ChangedNode> changed;
    {
        const Lock lock(mutex_);
        definition = std::move(definition_);
        operands = std::move(operands_);
        std::swap(changed, changed_);
    }
    std::vector<Ref<Shared>> gone;
    {
        const Lock turn(graph_turn);
        gone = destroy_executables(0);
    }
    if (most_ > 1) definition->may_change();
    if (scope.status().ok()) {  // else nothing runs any more
        release_after_launches(Ref<Shared>(*operands));
        release_after_launches(changed);
        release_after_launches(gone);
    }
    uses_.clear();
}

}  // namespace ftcuda::core
