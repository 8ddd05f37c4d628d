#include "process.hpp"

#include <chrono>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace ftcuda::core::process {

namespace {

constexpr std::chrono::milliseconds wait_of_others{10};

thread_local bool ends_process = false;

}  // namespace

std::atomic<State> state{State::running};

void watch_forks() {
#ifndef _WIN32
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { state.store(State::forked, std::memory_order_relaxed); });
    static_cast<void>(registered);
#endif
}

bool begin_exit(bool slowly) noexcept {
    ends_process = true;
    State running = State::running;
    return state.compare_exchange_strong(running, slowly ? State::exiting_slowly : State::exiting,
                                         std::memory_order_relaxed);
}

void wait_at_exit() noexcept {
    if (!ends_process) std::this_thread::sleep_for(wait_of_others);
}

}  // namespace ftcuda::core::process
