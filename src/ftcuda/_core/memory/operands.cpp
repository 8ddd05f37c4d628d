#include "operands.hpp"

#include "../sync/kept_lease.hpp"

namespace ftcuda::core {

Status OperandLeases::give_to_graph(Stream& stream, const Operands& operands, Shared* code, bool is_submitted,
                                    bool& given) {
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
    std::vector<KeptLease<Buffer>*> leases;
    leases.reserve(operands.count);
    mine->further.reserve(mine->further.size() + operands.count + 1);
    if (code != nullptr) mine->further.push_back(Ref<Shared>(*code));
    for (std::size_t index = 0; index < operands.count; ++index) {
        leases.push_back(new KeptLease<Buffer>(*operands.buffers[index]));
        mine->further.push_back(Ref<Shared>::adopt(leases.back()));
    }
    for (KeptLease<Buffer>* const lease : leases) lease->take_over();
    given = true;
    if (session != nullptr) {
        session->keep(std::move(mine));
        return {};
    }
    abi::CUuserObject object = nullptr;
    return deferred_release::release_with_graph(stream.context(), graph, std::move(mine), is_submitted, object);
}

Status OperandLeases::give_late(Stream& stream, const Operands& operands, Shared* code, bool& given) {
    bool capturing = false;
    const Status status = stream.is_capturing(capturing);
    return capturing ? give_to_graph(stream, operands, code, true, given) : status;
}

}  // namespace ftcuda::core
