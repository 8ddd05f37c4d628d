// The time that simulated work sees: of events and of kernels.
#pragma once

namespace ftcuda::sim {

double now_milliseconds() noexcept;  // since it was first asked

}  // namespace ftcuda::sim
