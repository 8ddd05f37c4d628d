// Counts the threads that are in a library which locks, for forked children: the threads that had its locks are not
// there, and whoever calls it would wait for ever.
#pragma once

#include <atomic>
#include <cstdint>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace ftcuda::driver {

class CallsUnderWay {
public:
    // False, and nothing is counted, in a process that was forked amid a call.
    bool begin() noexcept {
        const std::uint64_t mine = process() << 32;
        std::uint64_t before = state_.load(std::memory_order_relaxed);
        for (;;) {
            const bool is_mine = (before & ~calls) == mine;
            if (!is_mine && (before & calls) != 0) return false;
            if (state_.compare_exchange_weak(before, (is_mine ? before : mine) + 1, std::memory_order_relaxed))
                return true;
        }
    }

    void end() noexcept { state_.fetch_sub(1, std::memory_order_relaxed); }

private:
    static constexpr std::uint64_t calls = 0xffff'ffff;

    static std::uint64_t process() noexcept {
#ifdef _WIN32
        return 1;  // there is no fork
#else
        return static_cast<std::uint32_t>(getpid());
#endif
    }

    // The process in the upper half, its calls in the lower one. Relaxed: it guards no other data.
    std::atomic<std::uint64_t> state_{0};
};

// One of them, for a scope.
class CallUnderWay {
public:
    explicit CallUnderWay(CallsUnderWay& calls) noexcept : calls_(calls), has_begun_(calls.begin()) {}
    ~CallUnderWay() {
        if (has_begun_) calls_.end();
    }
    CallUnderWay(const CallUnderWay&) = delete;
    CallUnderWay& operator=(const CallUnderWay&) = delete;

    explicit operator bool() const noexcept { return has_begun_; }

private:
    CallsUnderWay& calls_;
    const bool has_begun_;
};

}  // namespace ftcuda::driver
