// How long a wait may take, and what may end it before.
//
// A wait without a limit is the driver's own. One with a limit asks the driver again and again: at once at first, then
// in pauses of a 128th of what it has waited so far, so that it ends at most 1 % late
// (docs/decisions/0012-waits-that-can-end.md). Where time is simulated, whoever moves it says when to ask again.
#pragma once

#include "../../_driver/clock.hpp"
#include "../../_driver/schedule.hpp"
#include "reason.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

namespace ftcuda::core {

struct Limit {
    double seconds = std::numeric_limits<double>::infinity();
    // Asked a hundred times a second, on the waiting thread, which holds leases but no lock: true ends the wait. Null:
    // nobody.
    bool (*is_interrupted)() = nullptr;

    bool is_none() const noexcept {
        return is_interrupted == nullptr && seconds == std::numeric_limits<double>::infinity();
    }
};

namespace limit {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds attention{10};  // how long nobody asks whether the wait is interrupted
constexpr std::chrono::milliseconds longest_pause{1};
constexpr std::chrono::microseconds shortest_sleep{50};  // Linux sleeps that much longer than it is told to
constexpr int share = 128;

inline Clock::time_point deadline(Clock::time_point begin, double seconds) noexcept {
    constexpr double years = 1e9;  // in seconds; more would overflow the clock
    if (seconds == std::numeric_limits<double>::infinity()) return driver::clock::never;
    return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, years)));
}

// Waits for `pause` from `now` on. `sleeps`: not spinning, however short it is.
inline void wait_a_little(Clock::time_point now, Clock::duration pause, bool sleeps) noexcept {
    if (sleeps || pause > shortest_sleep) {
        std::this_thread::sleep_for(std::max<Clock::duration>(pause - shortest_sleep, std::chrono::microseconds(1)));
        return;
    }
    while (Clock::now() < now + pause) std::this_thread::yield();
}

}  // namespace limit

// Asks until the answer is something else than CUDA_ERROR_NOT_READY: the answer, `timed_out` or `interrupted`. Asks
// once more after the last pause, and once if there is no time at all.
template <class Ask>
Status wait_until_ready(const Limit& given, bool sleeps, Ask ask) {
    driver::clock::Moment now = driver::clock::look();
    auto begin = now.time;
    auto end = limit::deadline(begin, given.seconds);
    auto next_attention = begin + limit::attention;
    driver::clock::Wait wait;
    for (;;) {
        const Status status = ask();
        if (!status.is(abi::CUDA_ERROR_NOT_READY)) return status;
        if (now.time >= end) return Reason::timed_out;
        if (now.is_simulated || now.time >= next_attention) {
            next_attention = now.time + limit::attention;
            if (given.is_interrupted != nullptr && given.is_interrupted()) return Reason::interrupted;
        }
        FTCUDA_SCHEDULE_POINT("wait for work");
        if (!wait.pause(now, end)) {
            const auto pause = (now.time - begin) / limit::share;
            limit::wait_a_little(
                now.time, std::min<limit::Clock::duration>({pause, limit::longest_pause, end - now.time}), sleeps);
        }
        const driver::clock::Moment before = now;
        now = driver::clock::look();
        if (now.is_simulated != before.is_simulated) {  // what is left of the limit is counted by the other clock
            begin += now.time - before.time;
            next_attention = now.time;
            if (end != driver::clock::never) end += now.time - before.time;
        }
    }
}

}  // namespace ftcuda::core
