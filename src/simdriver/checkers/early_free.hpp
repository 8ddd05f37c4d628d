// An oracle for memory that is freed before the last work that uses it was done. Under the lock.
//
// Work counts as a use of every allocation that its arguments name, from its submission until it is done.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim::early_free {

// A piece of work uses the allocation; `uses` remembers it until end().
void begin(Allocation& allocation, std::vector<std::uint64_t>& uses);
void end(const std::vector<std::uint64_t>& uses);

// The allocation goes.
void check(const Allocation& allocation);
// A library gives it to the host, which may touch it at once.
void check_given_out(const Allocation& allocation);

}  // namespace ftcuda::sim::early_free
