#include "operands.hpp"

namespace ftcuda::core {

namespace {

// A lease on a buffer that is a graph's.
class GraphLease final : public Shared {
public:
    explicit GraphLease(Buffer& buffer) noexcept : buffer_(buffer) {}
    // Takes over a lease of the caller's.
    void take_over() noexcept { entered_ = true; }

private:
    ~GraphLease() override {
        if (entered_) buffer_->leave();
    }

    const Ref<Buffer> buffer_;
    bool entered_ = false;
};

}  // namespace

Status OperandLeases::give_to_graph(Stream& stream, const Operands& operands, Shared* code, bool& given) {
    bool capturing = false;
    abi::CUgraph graph = nullptr;
    CaptureSession* const session = stream.session();
    if (session == nullptr) {
        if (const Status status = stream.captured_graph(capturing, graph); !status.ok() || !capturing) return status;
    }
    deferred_release::Retention mine;
    if (operands.foreign != nullptr) mine = std::move(*operands.foreign);
    if (session == nullptr &&
        graph == nullptr) {  // the capture has failed, or the driver, before 11.3, lets nobody add to its graph
        deferred_release::release_when_idle(stream.context(), std::move(mine));
        return {};
    }
    if (!mine) mine = deferred_release::retain(nullptr);
    std::vector<GraphLease*> leases;
    leases.reserve(operands.count);
    mine->further.reserve(mine->further.size() + operands.count + 1);
    if (code != nullptr) mine->further.push_back(Ref<Shared>(*code));
    for (std::size_t index = 0; index < operands.count; ++index) {
        leases.push_back(new GraphLease(*operands.buffers[index]));
        mine->further.push_back(Ref<Shared>::adopt(leases.back()));
    }
    for (GraphLease* const lease : leases) lease->take_over();
    given = true;
    if (session != nullptr) {
        session->keep(std::move(mine));
        return {};
    }
    return deferred_release::release_with_graph(stream.context(), graph, std::move(mine));
}

}  // namespace ftcuda::core
