#include "when_done.hpp"

#include "../sync/fork.hpp"
#include "../sync/mutex.hpp"

#include <atomic>

namespace ftcuda::core {
namespace when_done {

namespace {

// None of it is ever destroyed: the thread that waits here outlives main().
Mutex& mutex = *new Mutex(Rank::when_done);
Condition& changed = *new Condition;
WhenDone::List& waiting GUARDED_BY(mutex) = *new WhenDone::List;
WhenDone::List& taken GUARDED_BY(mutex) = *new WhenDone::List;  // the one that the thread has, if it has one
bool is_ended GUARDED_BY(mutex) = false;

std::atomic<bool> claimed{false};  // relaxed: it guards no data

void let_go_of_taken() noexcept {
    WhenDone::List over;
    const Lock lock(mutex);
    over.swap(taken);
}

}  // namespace

bool claim_thread() noexcept { return !is_forked() && !claimed.exchange(true, std::memory_order_relaxed); }

void give_claim_back() noexcept { claimed.store(false, std::memory_order_relaxed); }

Call take() {
    let_go_of_taken();
    const Lock lock(mutex);
    while (waiting.empty() || is_ended) changed.wait(mutex);
    taken.splice(taken.end(), waiting, waiting.begin());
    return {taken.front().function->object(), taken.front().status};
}

void end() noexcept {
    if (is_forked()) return;
    const Lock lock(mutex);
    is_ended = true;
}

}  // namespace when_done

void WhenDoneWaiter::over(Status status) noexcept {
    call_.front().status = status;
    if (is_forked()) return;
    const Lock lock(when_done::mutex);
    when_done::waiting.splice(when_done::waiting.end(), call_);
    when_done::changed.notify_all();
}

}  // namespace ftcuda::core
