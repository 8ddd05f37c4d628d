// How many blocks fit.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// On one multiprocessor at once.
int blocks_that_fit(const Function& function, int block_size, std::size_t dynamic_shared);

}  // namespace ftcuda::sim
