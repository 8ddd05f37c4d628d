#include "graph_builder.hpp"

#include "../../_driver/table.hpp"
#include "../launch/host_launch.hpp"
#include "../sync/fork.hpp"
#include "../sync/may_wait.hpp"

namespace ftcuda::core {

using driver::cu;
using namespace abi;

Status GraphBuilder::create(Context& context, unsigned flags, int priority, Ref<GraphBuilder>& builder) {
    Ref<CaptureSession> session;
    Ref<Stream> origin;
    if (const Status status = CaptureSession::create(context, flags, priority, nullptr, session, origin); !status.ok())
        return status;
    builder = Ref<GraphBuilder>::adopt(new GraphBuilder(std::move(session), std::move(origin), Kind::primary));
    return {};
}

Status GraphBuilder::end() {
    if (const Status status = may_wait(); !status.ok()) return status;
    CUgraph graph = nullptr;
    Ref<CapturedOperands> operands;
    const Lock lock(mutex_);  // who finds that it builds no more finds the graph
    if (const Status status = session_->end(graph, operands); !status.ok() || kind_ == Kind::body) return status;
    definition_ = Ref<GraphDefinition>::adopt(new GraphDefinition(stream_->context(), graph, std::move(operands)));
    return {};
}

Status GraphBuilder::definition(Ref<GraphDefinition>& definition) {
    if (const Status status = may_wait(); !status.ok()) return status;
    const Lock lock(mutex_);
    if (is_closed()) return Reason::closed;
    if (!definition_) return Reason::unended;
    definition = definition_;
    return {};
}

Status GraphBuilder::split(Ref<GraphBuilder>& part) {
    Ref<Stream> forked;
    if (const Status status = session_->fork(*stream_, forked); !status.ok()) return status;
    part = Ref<GraphBuilder>::adopt(new GraphBuilder(session_, std::move(forked), Kind::part));
    return {};
}

Status GraphBuilder::join(GraphBuilder& part) { return session_->join(*stream_, *part.stream_); }

Status GraphBuilder::embed(GraphBuilder& child) {
    Ref<GraphDefinition> embedded;
    if (const Status status = child.definition(embedded); !status.ok()) return status;
    return session_->add(*stream_, [&](const CaptureSession::Place& place, CUgraphNode& node) {
        bool is_kept = false;
        const Status added = embedded->use([&](CUgraph cu_graph) NOT_ANALYSED {
            Ref<Shared> kept;
            if (const Status lent = embedded->lend(cu_graph, kept); !lent.ok()) return lent;
            deferred_release::Retention retention;
            deferred_release::retain(retention, std::move(kept));
            session_->keep(std::move(retention));
            is_kept = true;
            const GraphDefinition::Bare bare(embedded.get());
            return Status(cu.cuGraphAddChildGraphNode(&node, place.graph, place.before, place.count, cu_graph));
        });
        if (is_kept && !added.ok()) session_->keep_no_more();
        return added;
    });
}

Status GraphBuilder::launch(const LaunchShape& shape, Ref<deferred_release::ForeignReference> caller, Kernel& kernel,
                            Ref<BoundArguments> arguments, std::vector<CapturedLaunch::Parameter> parameters,
                            std::vector<std::size_t> scratch) {
    if (!cu.cuGraphExecKernelNodeSetParams_v2) return Status(Reason::absent, Entry::cuGraphExecKernelNodeSetParams_v2);
    const Ref<CapturedLaunch> captured = Ref<CapturedLaunch>::adopt(
        new CapturedLaunch(kernel, shape, std::move(caller), arguments, std::move(parameters), std::move(scratch)));
    const Submission submission(*stream_);
    if (!submission.status().ok()) return submission.status();
    arguments->fix_maps();  // what a later launch leaves out is what was captured
    if (const Status status = arguments->launch(*stream_, shape, kernel); !status.ok()) return status;
    const ContextScope scope(stream_->context());
    if (!scope.status().ok()) return scope.status();
    CUgraphNode node = nullptr;
    if (const Status status = session_->find_node(*stream_, node); !status.ok()) return status;
    captured->set_node(node);
    session_->note(Ref<Shared>(*captured));
    return {};
}

Status GraphBuilder::call(CUhostFn function, void* user_data, deferred_release::Retention retention) {
    return host_launch(*stream_, function, user_data, std::move(retention));
}

Status GraphBuilder::create_condition(bool has_default, unsigned value, std::uint64_t& condition) {
    if (!cu.cuGraphConditionalHandleCreate) return Status(Reason::absent, Entry::cuGraphConditionalHandleCreate);
    return session_->use(*stream_, [&](CUgraph graph) {
        const Status made =
            cu.cuGraphConditionalHandleCreate(&condition, graph, stream_->context().cu_context(), value,
                                              has_default ? unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT} : 0U);
        if (made.ok()) session_->note_condition();
        return made;
    });
}

Status GraphBuilder::add_conditional(std::uint64_t condition, int type, std::vector<Ref<GraphBuilder>>& bodies) {
    if (!cu.cuStreamBeginCaptureToGraph) return Status(Reason::absent, Entry::cuStreamBeginCaptureToGraph);
    // What can fail comes before the node, which nobody could take out again.
    Status status;
    for (Ref<GraphBuilder>& body : bodies) {
        if (status.ok()) status = create_body(body);
    }
    if (status.ok()) status = add_node(condition, type, bodies);
    for (Ref<GraphBuilder>& body : bodies) {
        if (!status.ok() && body) body->close();
    }
    return status;
}

Status GraphBuilder::create_body(Ref<GraphBuilder>& body) {
    Ref<CaptureSession> session;
    Ref<Stream> origin;
    const Status status = CaptureSession::create(stream_->context(), stream_->flags(), stream_->priority(),
                                                 session_.get(), session, origin);
    if (status.ok())
        body = Ref<GraphBuilder>::adopt(new GraphBuilder(std::move(session), std::move(origin), Kind::body));
    return status;
}

Status GraphBuilder::add_node(std::uint64_t condition, int type, const std::vector<Ref<GraphBuilder>>& bodies) {
    const CUgraph* graphs = nullptr;
    const Status status = session_->add(*stream_, [&](const CaptureSession::Place& place, CUgraphNode& node) {
        CUgraphNodeParams parameters{};
        parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        parameters.conditional.handle = condition;
        parameters.conditional.type = type;
        parameters.conditional.size = static_cast<unsigned>(bodies.size());
        parameters.conditional.ctx = stream_->context().cu_context();
        const Status added = cu.cuGraphAddNode(&node, place.graph, place.before, place.count, &parameters);
        graphs = parameters.conditional.phGraph_out;
        if (added.ok()) session_->note_conditional_node();
        return added;
    });
    for (std::size_t index = 0; status.ok() && index < bodies.size(); ++index)
        bodies[index]->session_->embody(graphs[index]);
    return status;
}

bool GraphBuilder::close() noexcept {
    if (is_forked()) return false;
    if (deferred_release::put_off([self = Ref<GraphBuilder>(*this)] { self->close(); }))
        return kind_ != Kind::part && session_->is_capturing();
    if (kind_ == Kind::part) {
        session_->leave(*stream_);
        return false;
    }
    const bool lost = session_->close();
    Ref<GraphDefinition> gone;
    {
        const Lock lock(mutex_);
        gone = std::move(definition_);
    }
    return lost;
}

}  // namespace ftcuda::core
