#include "polled.hpp"

#include "../../_driver/clock.hpp"

namespace ftcuda::core {

bool PolledCompletion::is_wanted() noexcept {
    abi::CUresult answer = abi::CUDA_SUCCESS;
    return driver::clock::ask_context(answer);
}

Status PolledCompletion::ask() noexcept {
    const driver::clock::Moment now = driver::clock::look();
    const Status status = completion_.front().ask();
    if (!status.is(abi::CUDA_ERROR_NOT_READY)) {
        completion_.front().finish(status);
        return status;
    }
    driver::clock::Wait().pause(now, driver::clock::never);
    return status;
}

}  // namespace ftcuda::core
