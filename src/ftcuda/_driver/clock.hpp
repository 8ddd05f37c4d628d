// The time by which waits end: the real one, unless the driver is simulated and has a time of its own
// (docs/decisions/0019-simulated-time.md).
//
// A library that has one exports ftcuda_clock_look, _pause, _fall_asleep, _end and _ask_context.
#pragma once

#include "abi.hpp"

#include <chrono>
#include <cstdint>

namespace ftcuda::driver {

class Library;

namespace clock {

using Time = std::chrono::steady_clock::time_point;
constexpr Time never = Time::max();

void find(const Library& library);

struct Moment {
    Time time;
    bool is_simulated = false;
    std::uint64_t seen = 0;  // by which pause() knows what has happened since
};

Moment look() noexcept;

// A wait that asks again and again: look(), ask, pause.
class Wait {
public:
    Wait() noexcept = default;
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // Back when it is worth asking again, or the time is `until`. `before`: what look() gave before the last question.
    // False, at once, where time is real.
    bool pause(const Moment& before, Time until) noexcept;

private:
    void* library_has_ = nullptr;
};

// A wait for another thread, which wakes this one: for tests that are to know of it. Lives no longer than the wait.
class Sleep {
public:
    Sleep() noexcept;
    ~Sleep();
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;

private:
    void* library_has_ = nullptr;
};

// Whether all of the current context is done, as a query of a stream answers. False where that is not known, and always
// for a thread that nobody schedules.
bool ask_context(abi::CUresult& answer) noexcept;

}  // namespace clock
}  // namespace ftcuda::driver
