// Functions by their handles, which may be those of kernels. Under the lock.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// The function behind a handle, which may be a kernel's: then its function in `context`, or in the current one for
// null.
CUresult find_function(CUfunction handle, std::shared_ptr<Function>& function, Context* context = nullptr);

}  // namespace ftcuda::sim
