#include "host_call.hpp"

#include "../../_driver/host_function.hpp"
#include "../../_driver/schedule.hpp"
#include "../sync/fork.hpp"
#include "../sync/mutex.hpp"

#include <atomic>

namespace ftcuda::core {

namespace {

#ifdef FTCUDA_SCHEDULE_POINTS
using driver::schedule::give_part;
using driver::schedule::take_part;
#else
void* give_part() noexcept { return nullptr; }
void take_part(void*) noexcept {}
#endif

// A call of the driver's, on the stack of its thread.
struct Turn {
    void* const function;
    void* part;  // the thread's in a schedule, for whom it is now
    bool is_taken = false;
    bool is_over = false;
};

// None of it is ever destroyed: the driver's threads outlive main(), and so does the one that waits here.
Mutex& mutex = *new Mutex(Rank::host_call);
Condition& changed = *new Condition;
Turn* current GUARDED_BY(mutex) = nullptr;
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
    const Lock lock(mutex);
    while (current != nullptr && !is_ended) changed.wait(mutex);
    if (is_ended) return;
    Turn turn{static_cast<HostCall*>(call)->function_->object(), give_part()};
    current = &turn;
    changed.notify_all();
    while (!turn.is_over) changed.wait(mutex);
    take_part(turn.part);
}

namespace host_calls {

bool claim_thread() noexcept { return !is_forked() && !claimed.exchange(true, std::memory_order_relaxed); }

void give_claim_back() noexcept { claimed.store(false, std::memory_order_relaxed); }

void* take() {
    driver::host_function::end();
    void* const part = give_part();
    const Lock lock(mutex);
    if (current != nullptr && current->is_taken) {
        current->part = part;
        current->is_over = true;
        current = nullptr;
        changed.notify_all();
    }
    while (current == nullptr) changed.wait(mutex);
    current->is_taken = true;
    take_part(current->part);
    driver::host_function::begin();
    return current->function;
}

void end() noexcept {
    if (is_forked()) return;
    const Lock lock(mutex);
    is_ended = true;
    if (current != nullptr) {
        current->part = nullptr;  // the thread that calls has it
        current->is_over = true;
        current = nullptr;
    }
    changed.notify_all();
}

}  // namespace host_calls
}  // namespace ftcuda::core
