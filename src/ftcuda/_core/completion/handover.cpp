#include "handover.hpp"

#include "../../_driver/schedule.hpp"
#include "../sync/fork.hpp"
#include "../sync/limit.hpp"
#include "../sync/mutex.hpp"

#include <atomic>
#include <deque>

namespace ftcuda::core::handover {

namespace {

using Calls = std::deque<void*>;

// None of it is ever destroyed: daemon threads outlive main(), and one waits here.
Mutex& mutex = *new Mutex(Rank::handover);
Condition& changed = *new Condition;
Calls& calls GUARDED_BY(mutex) = *new Calls;
Calls& scheduled GUARDED_BY(mutex) = *new Calls;
bool release_is_asked GUARDED_BY(mutex) = false;

// Released when a call is over: who then sees that none is left sees what the calls did.
std::atomic<std::size_t> count{0};
// That the thread lets go of what is over. Sequentially consistent: who finds nothing to let go of sees that the thread
// was first.
std::atomic<bool> releasing{false};
std::atomic<bool> claimed{false};  // relaxed: it guards no data

bool is_scheduled() noexcept {
#ifdef FTCUDA_SCHEDULE_POINTS
    return driver::schedule::is_on();
#else
    return false;
#endif
}

void* pop(Calls& from) {
    if (from.empty()) return nullptr;
    void* const call = from.front();
    from.pop_front();
    return call;
}

}  // namespace

void put(void* call) {
    if (is_forked()) return;
    const bool stays = is_scheduled();
    const Lock lock(mutex);
    count.fetch_add(1, std::memory_order_relaxed);
    (stays ? scheduled : calls).push_back(call);
    if (!stays) changed.notify_all();
}

bool claim_thread() noexcept {
    return !is_forked() && !claimed.load(std::memory_order_relaxed) &&
           !claimed.exchange(true, std::memory_order_relaxed);
}

void give_claim_back() noexcept { claimed.store(false, std::memory_order_relaxed); }

void* take() {
    const Lock lock(mutex);
    while (calls.empty() && !release_is_asked) changed.wait(mutex);
    if (calls.empty()) {
        release_is_asked = false;
        releasing.store(true);
    }
    return pop(calls);
}

void* take_scheduled() {
    if (unfinished() == 0 || is_forked() || !is_scheduled()) return nullptr;
    const Lock lock(mutex);
    return pop(scheduled);
}

void finish() noexcept { count.fetch_sub(1, std::memory_order_release); }

void end_release() noexcept { releasing.store(false); }

bool is_releasing() noexcept { return releasing.load() && !is_forked(); }

std::size_t unfinished() noexcept { return count.load(std::memory_order_acquire); }

Status wait_until_at_most(std::size_t wanted, const Limit& limit) noexcept {
    return wait_until_ready(limit, true, [&] {
        if (is_forked() || unfinished() <= wanted) return Status();
        return Status::from_driver(abi::CUDA_ERROR_NOT_READY, Entry::cuEventQuery);
    });
}

void ask_for_release() noexcept {
    const Lock lock(mutex);
    release_is_asked = true;
    changed.notify_all();
}

void adopt_scheduled() {
    if (is_forked()) return;
    const Lock lock(mutex);
    calls.insert(calls.end(), scheduled.begin(), scheduled.end());
    scheduled.clear();
    changed.notify_all();
}

}  // namespace ftcuda::core::handover
