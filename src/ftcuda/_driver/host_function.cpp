#include "host_function.hpp"

namespace ftcuda::driver::host_function {

namespace {

thread_local bool is_mine = false;

}  // namespace

std::atomic<unsigned> running{0};

bool is_this_thread() noexcept { return is_mine; }

void begin() noexcept {
    is_mine = true;
    running.fetch_add(1, std::memory_order_relaxed);
}

void end() noexcept {
    if (!is_mine) return;
    running.fetch_sub(1, std::memory_order_relaxed);
    is_mine = false;
}

}  // namespace ftcuda::driver::host_function
