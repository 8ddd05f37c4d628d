#include "process.hpp"

#include <chrono>
#include <thread>

namespace ftcuda::core::process {

namespace {

constexpr std::chrono::milliseconds wait_of_others{10};

thread_local bool ends_process = false;

}  // namespace

std::atomic<State> state{State::running};

bool begin_exit(bool slowly) noexcept {
    if (is_forked()) return false;
    ends_process = true;
    State running = State::running;
    return state.compare_exchange_strong(running, slowly ? State::exiting_slowly : State::exiting,
                                         std::memory_order_relaxed);
}

void wait_at_exit() noexcept {
    if (!ends_process) std::this_thread::sleep_for(wait_of_others);
}

}  // namespace ftcuda::core::process
