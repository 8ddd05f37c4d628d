#include "host_launch.hpp"

#include "../../_driver/table.hpp"
#include "../memory/operands.hpp"

namespace ftcuda::core {

using driver::cu;

Status host_launch(Stream& stream, abi::CUhostFn function, void* user_data, deferred_release::Retention retention) {
    const Submission submission(stream);
    if (!submission.status().ok()) return submission.status();
    const ContextScope scope(stream.context());
    if (!scope.status().ok()) return scope.status();
    const Operands operands{nullptr, 0, &retention};
    OperandLeases leases(stream, operands);
    const Status status = leases.submit([&] { return cu.cuLaunchHostFunc(stream.cu_stream(), function, user_data); });
    if (!status.ok() && stream.session() != nullptr) stream.session()->keep_no_more();
    return status;
}

}  // namespace ftcuda::core
