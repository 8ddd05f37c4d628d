#include "reactor.hpp"

#include "../../_driver/background.hpp"
#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/process.hpp"
#include "../sync/fork.hpp"

#include <algorithm>

namespace ftcuda::core {

using driver::cu;
using std::chrono::microseconds;

namespace {

constexpr microseconds young{50};
constexpr microseconds shortest_pause{20};
constexpr microseconds longest_pause{1000};
constexpr int share = 16;          // of the age of the youngest
constexpr microseconds old{1000};  // whose context is asked for, as often
constexpr microseconds until_session_ends{1000};

}  // namespace

Reactor& Reactor::only() {
    static Reactor& only = *new Reactor;  // never destroyed: daemon threads outlive main()
    return only;
}

Status Reactor::begin(Awaited& awaited, Context& context, std::unique_ptr<Waiter> waiter) {
    Completions one;
    if (const Status status = arm(awaited, context, std::move(waiter), one); !status.ok()) return status;
    put(one);
    return {};
}

Status Reactor::begin(Awaited& awaited, Context& context, std::unique_ptr<Waiter> waiter, bool& is_over) {
    Completions one;
    if (const Status status = arm(awaited, context, std::move(waiter), one); !status.ok()) return status;
    const bool sleeps = pace_.load(std::memory_order_relaxed) == Pace::sleeping;
    const Status status = one.front().look_for(sleeps ? microseconds(0) : young);
    is_over = !status.is(abi::CUDA_ERROR_NOT_READY);
    if (is_over) {
        one.front().send_waiter_away();
        one.front().finish(status);
        return status;
    }
    put(one);
    return {};
}

Status Reactor::arm(Awaited& awaited, Context& context, std::unique_ptr<Waiter> waiter, Completions& armed) {
    start();
    armed.emplace_back(context, std::move(waiter));
    return awaited.arm(armed.front());
}

void Reactor::put(Completions& completion) noexcept {
    if (is_forked()) return;
    pending_.fetch_add(1, std::memory_order_relaxed);
    {
        const Lock lock(mutex_);
        arrived_.splice(arrived_.end(), completion);
    }
    wake();
}

Service::Pause Reactor::turn() noexcept {
    if (!process::may_destroy()) return for_ever;
    if (!driver::background::may_go_on()) return until_session_ends;
    take_in();
    look_at_words();
    ask_for_events();
    const Completion::Time now = std::chrono::steady_clock::now();
    ask_for_contexts(now);
    return pause(now);
}

void Reactor::take_in() noexcept {
    Completions arrived;
    {
        const Lock lock(mutex_);
        arrived.swap(arrived_);
    }
    while (!arrived.empty()) {
        const auto first = arrived.begin();
        youngest_ = std::max(youngest_, first->armed());
        if (!first->is_by_event()) {
            by_word_.splice(by_word_.end(), arrived, first);
            continue;
        }
        const auto same = std::find_if(by_event_.rbegin(), by_event_.rend(),
                                       [&](const Completion& each) { return each.is_of_same_stream(*first); });
        by_event_.splice(same.base(), arrived, first);
    }
}

void Reactor::look_at_words() noexcept {
    for (auto each = by_word_.begin(); each != by_word_.end();) {
        const auto which = each++;
        if (const Status status = which->ask(); !status.is(abi::CUDA_ERROR_NOT_READY)) finish(by_word_, which, status);
    }
}

void Reactor::ask_for_events() noexcept {
    const Completion* waits = nullptr;  // of its stream, the first that is not over
    for (auto each = by_event_.begin(); each != by_event_.end();) {
        const auto which = each++;
        if (waits != nullptr && waits->is_of_same_stream(*which)) continue;
        const Status status = which->ask();
        if (status.is(abi::CUDA_ERROR_NOT_READY)) {
            waits = &*which;
        } else {
            finish(by_event_, which, status);
        }
    }
}

// The answer is for who asks next: a context that has failed says so to all of its completions.
void Reactor::ask_for_contexts(Completion::Time now) noexcept {
    if (now - asked_ < old) return;
    const Context* asked = nullptr;
    for (const Completion& each : by_word_) {
        Context& context = each.context();
        if (now - each.armed() < old || &context == asked) continue;
        asked = &context;
        each.ask_for_context();
    }
    asked_ = now;
}

void Reactor::finish(Completions& from, Completions::iterator which, Status status) noexcept {
    which->finish(status);
    from.erase(which);
    pending_.fetch_sub(1, std::memory_order_relaxed);
}

Service::Pause Reactor::pause(Completion::Time now) const noexcept {
    if (by_word_.empty() && by_event_.empty()) return for_ever;
    const Pace pace = pace_.load(std::memory_order_relaxed);
    const auto age = std::chrono::duration_cast<microseconds>(now - youngest_);
    if (pace == Pace::spinning || (pace == Pace::adapted && age < young)) return Pause(0);
    return std::clamp<Pause>(age / share, shortest_pause, longest_pause);
}

}  // namespace ftcuda::core
