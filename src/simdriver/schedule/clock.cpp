#include "clock.hpp"

#include <algorithm>

namespace ftcuda::sim::clock {

namespace {

constexpr std::chrono::milliseconds between_questions{1};
constexpr Nanoseconds look_of_a_kernel = 1'000;

// The atomics are stored under the lock. Relaxed: who reads them without it learns the time, and nothing else by it;
// who waits reads them with it.
struct State {
    std::atomic<bool> of_test{false};
    std::atomic<bool> of_session{false};
    std::atomic<Nanoseconds> now{0};
    std::atomic<Nanoseconds> of_work{0};
    std::atomic<Nanoseconds> ahead{0};  // of the real time
    std::atomic<std::int64_t> looks_of_kernels{0};
    std::atomic<std::uint64_t> moves{0};
    Nanoseconds moved = 0;
    Nanoseconds begin_of_test = 0;
    std::vector<Waiter*> waiters;
};

State& state() noexcept {
    static State& only = *new State;  // never destroyed: workers may outlive the static objects
    return only;
}

// Since it was first asked.
Nanoseconds real() noexcept {
    static const auto start = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds since = std::chrono::steady_clock::now() - start;
    return after(since.count(), state().ahead.load(std::memory_order_relaxed));
}

Nanoseconds kernel_time(std::int64_t looks) noexcept { return after(of_work(), looks * look_of_a_kernel); }

void begin() noexcept {
    if (is_simulated()) return;
    jump(real());
    state().looks_of_kernels.store(0, std::memory_order_relaxed);
}

void end() noexcept {
    if (is_simulated()) return;
    const Nanoseconds lost = kernel_time(state().looks_of_kernels.load(std::memory_order_relaxed)) - real();
    if (lost > 0) state().ahead.fetch_add(lost, std::memory_order_relaxed);
}

}  // namespace

bool is_a_tests() noexcept { return state().of_test.load(std::memory_order_relaxed); }
bool is_simulated() noexcept { return is_a_tests() || state().of_session.load(std::memory_order_relaxed); }
Nanoseconds now() noexcept { return state().now.load(std::memory_order_relaxed); }
Nanoseconds of_work() noexcept { return state().of_work.load(std::memory_order_relaxed); }
Nanoseconds after(Nanoseconds time, Nanoseconds span) noexcept { return span > never - time ? never : time + span; }

double now_milliseconds() noexcept { return static_cast<double>(is_simulated() ? of_work() : real()) * 1e-6; }

std::uint64_t kernel_nanoseconds() noexcept {
    if (!is_simulated()) return static_cast<std::uint64_t>(real());
    return static_cast<std::uint64_t>(
        kernel_time(1 + state().looks_of_kernels.fetch_add(1, std::memory_order_relaxed)));
}

void begin_of_test() noexcept {
    begin();
    state().moved = 0;
    state().begin_of_test = now();
    state().of_test.store(true, std::memory_order_relaxed);
}

void begin_of_session() noexcept {
    begin();
    state().of_session.store(true, std::memory_order_relaxed);
}

void end_of_test() noexcept {
    state().of_test.store(false, std::memory_order_relaxed);
    end();
    driver_state().progress.notify_all();
}

void end_of_session() noexcept {
    state().of_session.store(false, std::memory_order_relaxed);
    end();
}

void jump(Nanoseconds to) noexcept {
    state().now.store(to, std::memory_order_relaxed);
    state().of_work.store(to, std::memory_order_relaxed);
}

std::uint64_t moves() noexcept { return state().moves.load(std::memory_order_relaxed); }
Nanoseconds moved() noexcept { return state().moved; }
Nanoseconds since_begin_of_test() noexcept { return of_work() - state().begin_of_test; }

void pause(Guard& lock, Waiter& waiter, std::uint64_t seen, Nanoseconds until) {
    waiter.until = until;
    if (seen != moves()) return;  // it has asked without the counter as it is now
    if (!waiter.is_settled) {
        waiter.is_settled = true;
        driver_state().progress.notify_all();
    }
    driver_state().progress.wait_for(lock, between_questions);
}

void join(Waiter& waiter) { state().waiters.push_back(&waiter); }

void join_asleep(Waiter& waiter) {
    waiter.asks = false;
    waiter.is_settled = true;
    join(waiter);
    driver_state().progress.notify_all();
}

void leave(Waiter& waiter) noexcept {
    std::vector<Waiter*>& waiters = state().waiters;
    waiters.erase(std::remove(waiters.begin(), waiters.end(), &waiter), waiters.end());
    driver_state().progress.notify_all();
}

unsigned waiting() noexcept {
    const std::vector<Waiter*>& waiters = state().waiters;
    return static_cast<unsigned>(
        std::count_if(waiters.begin(), waiters.end(), [](const Waiter* waiter) { return waiter->is_settled; }));
}

bool all_are_settled() noexcept {
    const std::vector<Waiter*>& waiters = state().waiters;
    return std::all_of(waiters.begin(), waiters.end(), [](const Waiter* waiter) { return waiter->is_settled; });
}

Nanoseconds next_limit() noexcept {
    Nanoseconds next = never;
    for (const Waiter* const waiter : state().waiters) {
        if (waiter->until > now()) next = std::min(next, waiter->until);
    }
    return next;
}

void move_for_work(Nanoseconds to) noexcept {
    state().of_work.store(to, std::memory_order_relaxed);
    driver_state().progress.notify_all();
}

void move(Nanoseconds to) noexcept {
    State& s = state();
    s.moved = after(s.moved, to - now());
    jump(to);
    s.moves.fetch_add(1, std::memory_order_relaxed);
    for (Waiter* const waiter : s.waiters) waiter->is_settled = !waiter->asks;
    driver_state().progress.notify_all();
}

}  // namespace ftcuda::sim::clock
