#include "clock.hpp"

#include "library.hpp"

#include <atomic>

namespace ftcuda::driver::clock {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

struct Simulated {
    int (*look)(std::int64_t* now, std::uint64_t* seen) = nullptr;
    int (*pause)(void** wait, std::int64_t until, std::uint64_t seen) = nullptr;
    void* (*fall_asleep)() = nullptr;
    void (*end)(void* wait) = nullptr;
    int (*ask_context)(int* answer) = nullptr;
};

// Published once with release, when the driver is loaded; read with acquire.
std::atomic<const Simulated*> simulated{nullptr};

const Simulated* found() noexcept { return simulated.load(std::memory_order_acquire); }

}  // namespace

void find(const Library& library) {
    static Simulated found;
    found.look = reinterpret_cast<int (*)(std::int64_t*, std::uint64_t*)>(library.symbol("ftcuda_clock_look"));
    found.pause = reinterpret_cast<int (*)(void**, std::int64_t, std::uint64_t)>(library.symbol("ftcuda_clock_pause"));
    found.fall_asleep = reinterpret_cast<void* (*)()>(library.symbol("ftcuda_clock_fall_asleep"));
    found.end = reinterpret_cast<void (*)(void*)>(library.symbol("ftcuda_clock_end"));
    found.ask_context = reinterpret_cast<int (*)(int*)>(library.symbol("ftcuda_clock_ask_context"));
    const bool complete = found.look != nullptr && found.pause != nullptr && found.fall_asleep != nullptr &&
                          found.end != nullptr && found.ask_context != nullptr;
    if (complete) simulated.store(&found, std::memory_order_release);
}

Moment look() noexcept {
    std::int64_t now = 0;
    std::uint64_t seen = 0;
    const Simulated* const library = found();
    if (library == nullptr || library->look(&now, &seen) == 0) return {Clock::now(), false, 0};
    return {Time(std::chrono::duration_cast<Clock::duration>(nanoseconds(now))), true, seen};
}

Wait::~Wait() {
    if (library_has_ != nullptr) found()->end(library_has_);
}

bool Wait::pause(const Moment& before, Time until) noexcept {
    if (!before.is_simulated) return false;
    const std::int64_t time = std::chrono::duration_cast<nanoseconds>(until.time_since_epoch()).count();
    return found()->pause(&library_has_, time, before.seen) != 0;
}

Sleep::Sleep() noexcept {
    if (const Simulated* const library = found()) library_has_ = library->fall_asleep();
}

Sleep::~Sleep() {
    if (library_has_ != nullptr) found()->end(library_has_);
}

bool ask_context(abi::CUresult& answer) noexcept {
    int result = 0;
    const Simulated* const library = found();
    if (library == nullptr || library->ask_context(&result) == 0) return false;
    answer = static_cast<abi::CUresult>(result);
    return true;
}

}  // namespace ftcuda::driver::clock
