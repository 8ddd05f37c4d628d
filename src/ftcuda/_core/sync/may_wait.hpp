// A function that a stream waits for makes no call of the driver (_driver/host_function.hpp). Nor does it wait for a
// lock that others hold during such a call, or for others who may be in one: that is refused before. What it closes or
// lets go of goes later (deferred_release::put_off).
#pragma once

#include "../../_driver/host_function.hpp"
#include "fork.hpp"
#include "reason.hpp"

namespace ftcuda::core {

// For who takes a lock, or waits, before anything else says whether it may go on.
inline Status may_wait() noexcept {
    if (is_forked()) return Reason::forked;
    if (!driver::host_function::is_here()) return {};
    return Status(Reason::in_host_function, Entry::none, abi::CUDA_ERROR_NOT_PERMITTED);
}

}  // namespace ftcuda::core
