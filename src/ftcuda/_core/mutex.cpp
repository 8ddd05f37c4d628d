#include "mutex.hpp"

#ifdef FTCUDA_DEBUG_LOCKS
#include <cstdio>
#include <cstdlib>
#endif

namespace ftcuda::core {

#ifdef FTCUDA_DEBUG_LOCKS

namespace {

constexpr const char* names[] = {"module", "exclusive_section", "event_pool", "retired", "mailbox"};

// Bit r is set while this thread holds a mutex of rank r.
thread_local unsigned held = 0;

void check_order(Rank wanted) {
    const unsigned rank = static_cast<unsigned>(wanted);
    const unsigned same_or_inner = held >> rank;
    if (same_or_inner == 0) return;
    unsigned inner = rank;
    while (((held >> inner) & 1u) == 0) ++inner;
    std::fprintf(stderr, "ftcuda: lock order: '%s' wanted while holding '%s'\n", names[rank], names[inner]);
    std::abort();
}

}  // namespace

void Mutex::lock() {
    check_order(rank_);
    mutex_.lock();
    held |= 1u << static_cast<unsigned>(rank_);
}

void Mutex::unlock() {
    held &= ~(1u << static_cast<unsigned>(rank_));
    mutex_.unlock();
}

#else

void Mutex::lock() { mutex_.lock(); }
void Mutex::unlock() { mutex_.unlock(); }

#endif

}  // namespace ftcuda::core
