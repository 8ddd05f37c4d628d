#include "clock.hpp"

#include <chrono>

namespace ftcuda::sim {

double now_milliseconds() noexcept {
    static const auto start = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace ftcuda::sim
