#include "graph_builder.hpp"

#include "../../_driver/table.hpp"
#include "../sync/fork.hpp"

namespace ftcuda::core {

using namespace abi;

Status GraphBuilder::create(Context& context, unsigned flags, int priority, Ref<GraphBuilder>& builder) {
    Ref<CaptureSession> session;
    Ref<Stream> origin;
    if (const Status status = CaptureSession::create(context, flags, priority, session, origin); !status.ok())
        return status;
    builder = Ref<GraphBuilder>::adopt(new GraphBuilder(std::move(session), std::move(origin), true));
    return {};
}

Status GraphBuilder::end() {
    CUgraph graph = nullptr;
    if (const Status status = session_->end(graph); !status.ok()) return status;
    Ref<GraphDefinition> made = Ref<GraphDefinition>::adopt(new GraphDefinition(stream_->context(), graph));
    const Lock lock(mutex_);
    if (!is_closed()) definition_ = std::move(made);
    return {};
}

Status GraphBuilder::definition(Ref<GraphDefinition>& definition) {
    if (is_forked()) return Reason::forked;
    const Lock lock(mutex_);
    if (is_closed()) return Reason::closed;
    if (!definition_) return Reason::unended;
    definition = definition_;
    return {};
}

Status GraphBuilder::split(Ref<GraphBuilder>& part) {
    if (is_closed()) return Reason::closed;
    Ref<Stream> forked;
    if (const Status status = session_->fork(*stream_, forked); !status.ok()) return status;
    part = Ref<GraphBuilder>::adopt(new GraphBuilder(session_, std::move(forked), false));
    return {};
}

Status GraphBuilder::join(GraphBuilder& part) {
    if (is_closed() || part.closed_.exchange(true, std::memory_order_acq_rel)) return Reason::closed;
    const Status status = session_->join(*stream_, *part.stream_);
    if (!status.ok()) part.closed_.store(false, std::memory_order_release);
    return status;
}

Status GraphBuilder::embed(GraphBuilder& child) {
    if (is_closed()) return Reason::closed;
    Ref<GraphDefinition> embedded;
    if (const Status status = child.definition(embedded); !status.ok()) return status;
    return session_->add(*stream_, [&](CUgraph graph, const CUgraphNode* before, std::size_t count, CUgraphNode& node) {
        return embedded->use([&](CUgraph cu_graph) {
            return driver::cu.cuGraphAddChildGraphNode(&node, graph, before, count, cu_graph);
        });
    });
}

bool GraphBuilder::close() noexcept {
    if (is_forked() || closed_.exchange(true, std::memory_order_acq_rel)) return false;
    stream_->end_captured_work();
    if (!primary_) return false;
    Ref<GraphDefinition> gone;
    {
        const Lock lock(mutex_);
        gone = std::move(definition_);
    }
    return session_->close();
}

}  // namespace ftcuda::core
