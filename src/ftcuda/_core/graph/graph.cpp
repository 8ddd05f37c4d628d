#include "graph.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

deferred_release::Retention retained(const Ref<CapturedOperands>& operands) {
    deferred_release::Retention retention;
    deferred_release::retain(retention, Ref<Shared>(*operands));
    return retention;
}

}  // namespace

Status Graph::instantiate(GraphDefinition& definition, unsigned flags, Stream* upload, Ref<Graph>& graph) {
    if (!cu.cuGraphInstantiateWithFlags) return Status(Reason::absent, Entry::cuGraphInstantiateWithFlags);
    if (definition.operands()->unused_conditions() != 0) return Reason::unplaced;
    CUgraphExec made = nullptr;
    const RelaxedCapture relaxed;
    Status status =
        definition.use([&](CUgraph cu_graph) { return cu.cuGraphInstantiateWithFlags(&made, cu_graph, flags); });
    if (!status.ok()) return status;
    Ref<Graph> mine = Ref<Graph>::adopt(new Graph(definition.context(), made, definition.operands()));
    if (upload != nullptr) status = mine->upload(*upload);
    if (!status.ok()) {
        mine->close();
        return status;
    }
    graph = std::move(mine);
    return {};
}

template <class Use>
Status Graph::use_in(Stream& stream, Use use) {
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
    uses_.add(stream, stream.id());
    const Lock lock(mutex_);
    const Status status = context_.observe(use());
    if (stream.is_default() && !uses_.mark(stream, "launch of a graph"))
        unordered_.store(true, std::memory_order_relaxed);
    return status;
}

Status Graph::launch(Stream& stream) {
    return use_in(stream, [&] { return cu.cuGraphLaunch(cu_graph_exec_, stream.cu_stream()); });
}

Status Graph::upload(Stream& stream) {
    return use_in(stream, [&] { return cu.cuGraphUpload(cu_graph_exec_, stream.cu_stream()); });
}

Status Graph::update(GraphDefinition& definition, int& refusal) {
    refusal = 0;
    if (!cu.cuGraphExecUpdate_v2) return Status(Reason::absent, Entry::cuGraphExecUpdate_v2);
    if (&definition.context() != &context_) return Reason::wrong_device;
    const Lease<Graph> lease(*this);
    if (!lease) return Reason::closed;
    CUgraphExecUpdateResultInfo info{};
    Ref<CapturedOperands> old;
    const RelaxedCapture relaxed;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Status status = definition.use([&](CUgraph graph) {
        const Lock lock(mutex_);
        const driver::Status updated = cu.cuGraphExecUpdate_v2(cu_graph_exec_, graph, &info);
        if (updated.ok()) old = std::exchange(operands_, definition.operands());
        return updated;
    });
    if (status.ok()) release_after_launches(std::move(old));
    else refusal = info.result;
    return status;
}

void Graph::release_after_launches(Ref<CapturedOperands> operands) noexcept {
    if (unordered_.load(std::memory_order_relaxed)) {
        deferred_release::release_when_idle(context_, retained(operands));
        return;
    }
    uses_.visit([&](Use& use, std::uint64_t) {
        bool capturing = false;
        if (use.event != nullptr ? context_.is_reached(use.event) : use.stream->is_finished()) return;
        const bool is_known = use.event == nullptr && use.stream->is_capturing(capturing).ok() && !capturing;
        if (is_known) deferred_release::release_after_work(context_, use.stream->cu_stream(), retained(operands));
        else deferred_release::release_when_idle(context_, retained(operands));
    });
}

void Graph::destroy() noexcept {
    if (!context_.may_destroy()) return;
    const RelaxedCapture relaxed;
    const ContextScope scope(context_);
    Ref<CapturedOperands> operands;
    {
        const Lock lock(mutex_);
        operands = std::move(operands_);
    }
    {
        const Lock lock(graph_turn);  // the driver looks at the graph that it was made of
        deferred_errors::add(context_.observe(cu.cuGraphExecDestroy(cu_graph_exec_)), "destroy", "graph");
    }
    if (scope.status().ok()) release_after_launches(std::move(operands));  // else nothing runs any more
    uses_.clear();
}

}  // namespace ftcuda::core
