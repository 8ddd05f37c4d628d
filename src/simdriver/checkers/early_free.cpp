#include "early_free.hpp"

#include "violations.hpp"

namespace ftcuda::sim::early_free {

void begin(Allocation& allocation, std::vector<std::uint64_t>& uses) {
    ++allocation.pending;
    uses.push_back(allocation.begin);
}

void end(const std::vector<std::uint64_t>& uses) {
    for (const std::uint64_t begin : uses) {
        const auto found = driver_state().allocations.find(begin);
        if (found != driver_state().allocations.end() && found->second.pending != 0) --found->second.pending;
    }
}

void check(const Allocation& allocation) {
    if (allocation.pending == 0) return;
    violation(allocation.kind == Kind::registered ? "memory unregistered before the last work that uses it was done"
                                                  : "memory freed before the last work that uses it was done");
}

void check_given_out(const Allocation& allocation) {
    if (allocation.pending != 0) violation("memory given out to the host before the last work that uses it was done");
}

}  // namespace ftcuda::sim::early_free
