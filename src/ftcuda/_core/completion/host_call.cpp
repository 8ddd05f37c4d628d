#include "host_call.hpp"

#include "../sync/fork.hpp"
#include "../sync/mutex.hpp"

#include <atomic>

namespace ftcuda::core {

namespace {

// A call of the driver's, on the stack of its thread.
struct Turn {
    void* const function;
    bool is_over = false;
    Turn* next = nullptr;
};

// None of it is ever destroyed: the driver's threads outlive main(), and so does the one that waits here.
Mutex& mutex = *new Mutex(Rank::host_call);
Condition& changed = *new Condition;
Turn* first GUARDED_BY(mutex) = nullptr;  // may be taken
Turn* last GUARDED_BY(mutex) = nullptr;
bool is_ended GUARDED_BY(mutex) = false;

std::atomic<bool> claimed{false};  // relaxed: it guards no data

}  // namespace

void* HostCall::make(deferred_release::Retention& retention, Ref<deferred_release::ForeignReference> function) {
    Ref<HostCall> made = Ref<HostCall>::adopt(new HostCall(std::move(function)));
    void* const call = made.get();
    deferred_release::retain(retention, Ref<Shared>::adopt(made.detach()));
    return call;
}

void HostCall::run(void* call) noexcept {
    if (is_forked()) return;
    Turn turn{static_cast<HostCall*>(call)->function_->object()};
    const Lock lock(mutex);
    if (is_ended) return;
    *(first == nullptr ? &first : &last->next) = &turn;
    last = &turn;
    changed.notify_all();
    while (!turn.is_over) changed.wait(mutex);
}

namespace host_calls {

bool claim_thread() noexcept { return !is_forked() && !claimed.exchange(true, std::memory_order_relaxed); }

void give_claim_back() noexcept { claimed.store(false, std::memory_order_relaxed); }

void* take() {
    const Lock lock(mutex);
    while (first == nullptr) changed.wait(mutex);
    return first->function;
}

void finish() noexcept {
    const Lock lock(mutex);
    if (first == nullptr) return;  // the end has come between
    Turn& turn = *first;
    first = turn.next;
    turn.is_over = true;
    changed.notify_all();
}

void end() noexcept {
    if (is_forked()) return;
    const Lock lock(mutex);
    is_ended = true;
    for (; first != nullptr; first = first->next) first->is_over = true;
    changed.notify_all();
}

}  // namespace host_calls
}  // namespace ftcuda::core
