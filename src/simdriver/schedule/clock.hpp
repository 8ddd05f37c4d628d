// What time it is, for simulated work and for whoever asks the driver: the real time, or a counter that somebody moves
// (docs/decisions/0019-simulated-time.md). A test moves it, or the scheduler.
#pragma once

#include "../state/driver_state.hpp"

#include <chrono>
#include <limits>

namespace ftcuda::sim::clock {

using Nanoseconds = std::int64_t;
// Where no test moves the clock to: the real time goes on from there.
constexpr Nanoseconds end_of_time = 9'000'000'000'000'000'000;
constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

// Whether a test moves the counter, or the scheduler that of its own threads.
bool is_a_tests() noexcept;
bool is_simulated() noexcept;
Nanoseconds now() noexcept;  // the counter
// The same for work, for which it moves first: what ends at the moment of a limit is done by then.
Nanoseconds of_work() noexcept;
// Later by so much; `never` is the latest.
Nanoseconds after(Nanoseconds time, Nanoseconds span) noexcept;

// What events and kernels see: it never runs backwards, also where simulated time begins and ends. Each look of a
// kernel takes a microsecond of simulated time, which nobody else sees: a kernel that waits for its clock ends.
double now_milliseconds() noexcept;
std::uint64_t kernel_nanoseconds() noexcept;

// The rest is under the lock.

// The counter begins where the real time is, and when both have ended real time goes on where the counter is.
void begin_of_test() noexcept;
void begin_of_session() noexcept;
void end_of_test() noexcept;
void end_of_session() noexcept;

// For the scheduler: its threads look by themselves.
void jump(Nanoseconds to) noexcept;

// A thread of no session that waits for the counter, or for something else that it asks for again and again. It is
// settled when it has asked since the counter was last moved, and waits on; one that waits to be woken always is.
struct Waiter {
    Nanoseconds until = never;
    bool is_settled = false;
    bool asks = true;
};

// How often a test has moved the counter. Whoever reads it before asking hands it to pause().
std::uint64_t moves() noexcept;
// By how much in all; and what time it is since the test began.
Nanoseconds moved() noexcept;
Nanoseconds since_begin_of_test() noexcept;
// Back when the counter was moved after `seen`, after some work, or a millisecond.
void pause(Guard& lock, Waiter& waiter, std::uint64_t seen, Nanoseconds until);
void join(Waiter& waiter);
void join_asleep(Waiter& waiter);
void leave(Waiter& waiter) noexcept;

unsigned waiting() noexcept;  // threads that are settled
bool all_are_settled() noexcept;
Nanoseconds next_limit() noexcept;  // after now()
void move_for_work(Nanoseconds to) noexcept;
void move(Nanoseconds to) noexcept;

}  // namespace ftcuda::sim::clock
