#include "violations.hpp"

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

void violation(const std::string& text) {
    constexpr std::size_t kept = 256;
    DriverState& state = driver_state();
    ++state.violation_count;
    if (state.violations.size() < kept) state.violations.push_back(text);
}

}  // namespace ftcuda::sim
