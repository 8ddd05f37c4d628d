#include "process.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace ftcuda::core::process {

std::atomic<State> state{State::running};

void watch_forks() {
#ifndef _WIN32
    static const int registered = pthread_atfork(nullptr, nullptr, [] { state.store(State::forked, std::memory_order_relaxed); });
    static_cast<void>(registered);
#endif
}

void begin_exit() noexcept {
    State running = State::running;
    state.compare_exchange_strong(running, State::exiting, std::memory_order_relaxed);
}

}  // namespace ftcuda::core::process
