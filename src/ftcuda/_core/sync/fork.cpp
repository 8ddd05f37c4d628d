#include "fork.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace ftcuda::core {

std::atomic<bool> forked{false};

void watch_forks() {
#ifndef _WIN32
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
    static_cast<void>(registered);
#endif
}

}  // namespace ftcuda::core
