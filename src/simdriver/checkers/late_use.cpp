#include "late_use.hpp"

#include "violations.hpp"

namespace ftcuda::sim::late_use {

void check(const Allocation& allocation) {
    if (allocation.freeing) violation("work submitted with memory whose free is already submitted");
}

}  // namespace ftcuda::sim::late_use
