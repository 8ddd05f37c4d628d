// The control surface.
#include "control.hpp"

#include "calls/faults.hpp"
#include "calls/gate.hpp"
#include "checkers/races.hpp"
#include "schedule/scheduler.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim {

namespace {

std::size_t copy_text(const std::string& text, char* target, std::size_t capacity) {
    if (capacity != 0) {
        const std::size_t length = std::min(text.size(), capacity - 1);
        std::memcpy(target, text.data(), length);
        target[length] = '\0';
    }
    return text.size();
}

std::uint64_t violation_count() {
    const Guard lock(driver_state().mutex);
    return driver_state().violation_count;
}

std::size_t violation_text(std::uint64_t index, char* text, std::size_t capacity) {
    const Guard lock(driver_state().mutex);
    return index < driver_state().violations.size() ? copy_text(driver_state().violations[index], text, capacity) : 0;
}

void clear_violations() {
    const Guard lock(driver_state().mutex);
    driver_state().violations.clear();
    driver_state().violation_count = 0;
}

void count_allocations(int object, std::uint64_t& count, std::uint64_t& bytes) {
    const Kind kind = object == FTCUDA_SIM_DEVICE_ALLOCATION    ? Kind::device
                      : object == FTCUDA_SIM_PINNED_ALLOCATION  ? Kind::pinned
                      : object == FTCUDA_SIM_MANAGED_ALLOCATION ? Kind::managed
                                                                : Kind::registered;
    for (const auto& [begin, allocation] : driver_state().allocations) {
        if (allocation.kind != kind || allocation.module_owned) continue;
        ++count;
        bytes += allocation.size;
    }
}

std::uint64_t live(int object) {
    DriverState& state = driver_state();
    const Guard lock(state.mutex);
    switch (object) {
    case FTCUDA_SIM_CONTEXT: {
        std::uint64_t retained = 0;
        for (const std::shared_ptr<Context>& context : state.contexts) retained += context->retained != 0 ? 1 : 0;
        return retained;
    }
    case FTCUDA_SIM_STREAM: return state.streams.size();
    case FTCUDA_SIM_EVENT: return state.events.size();
    case FTCUDA_SIM_MODULE: return state.modules.size();
    case FTCUDA_SIM_POOL: return state.pools.size() - state.default_pools.size();
    case FTCUDA_SIM_LIBRARY: return state.libraries.size();
    default: break;
    }
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    count_allocations(object, count, bytes);
    return count;
}

std::uint64_t live_bytes(int object) {
    const Guard lock(driver_state().mutex);
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    count_allocations(object, count, bytes);
    return bytes;
}

void hold() {
    const Guard lock(driver_state().mutex);
    driver_state().held = true;
}

void release_clock() {
    const Guard lock(driver_state().mutex);
    driver_state().held = false;
    driver_state().progress.notify_all();
}

void limit_memory(int device, std::uint64_t bytes) {
    const Guard lock(driver_state().mutex);
    if (device >= 0 && static_cast<std::size_t>(device) < driver_state().memory_limits.size()) {
        driver_state().memory_limits[static_cast<std::size_t>(device)] = bytes;
    }
}

std::size_t last_fault_text(char* text, std::size_t capacity) {
    const Guard lock(driver_state().mutex);
    return copy_text(driver_state().last_fault, text, capacity);
}

static_assert(static_cast<int>(FaultAction::fail) == FTCUDA_SIM_FAIL);
static_assert(static_cast<int>(FaultAction::hold) == FTCUDA_SIM_HOLD);
static_assert(static_cast<int>(FaultAction::poison) == FTCUDA_SIM_POISON);
static_assert(static_cast<int>(FaultAction::hold_after) == FTCUDA_SIM_HOLD_AFTER);

std::uint64_t add_fault_of(const FtcudaSimFault* fault) {
    return add_fault({fault->entry, fault->nth, fault->thread, static_cast<FaultAction>(fault->action),
                      static_cast<CUresult>(fault->value)});
}

void watch_races(int on) { races::watch(on != 0); }

int schedule_begin(int kind, unsigned depth, std::uint64_t seed, unsigned threads) {
    Guard lock(driver_state().mutex);
    return scheduler::begin(lock, {static_cast<scheduler::Kind>(kind), depth, seed}, threads) ? 1 : 0;
}

int schedule_wait(std::uint64_t milliseconds) {
    Guard lock(driver_state().mutex);
    return static_cast<int>(scheduler::wait(lock, std::chrono::milliseconds(milliseconds)));
}

void schedule_abandon() {
    Guard lock(driver_state().mutex);
    scheduler::abandon(lock);
}

std::size_t schedule_report(char* text, std::size_t capacity) {
    const Guard lock(driver_state().mutex);
    return copy_text(scheduler::report(), text, capacity);
}

std::uint64_t schedule_steps() {
    const Guard lock(driver_state().mutex);
    return scheduler::steps();
}

std::uint64_t schedule_trace() {
    const Guard lock(driver_state().mutex);
    return scheduler::trace();
}

void schedule_enter(std::uint64_t index) {
    Guard lock(driver_state().mutex);
    scheduler::enter(lock, index);
}

void schedule_leave() {
    Guard lock(driver_state().mutex);
    scheduler::leave(lock);
}

int schedule_is_on() { return scheduler::is_scheduled() ? 1 : 0; }
void schedule_point(const char* where) { scheduler::point(where); }

int schedule_park(const void* key, const char* where) { return scheduler::park(key, where) ? 1 : 0; }

void schedule_unpark(const void* key) {
    if (!scheduler::is_active()) return;  // no lock without need: in the child of a fork it may be locked for ever
    const Guard lock(driver_state().mutex);
    scheduler::unpark(key);
}

void schedule_hold(const void* key) {
    if (!scheduler::is_scheduled()) return;
    const Guard lock(driver_state().mutex);
    scheduler::hold(key);
}

void schedule_let_go(const void* key) {
    if (!scheduler::is_scheduled()) return;
    const Guard lock(driver_state().mutex);
    scheduler::let_go(key);
}

const FtcudaSimControl control = {
    3,
    violation_count,
    violation_text,
    clear_violations,
    live,
    live_bytes,
    calls_of,
    name_of,
    hold,
    release_clock,
    this_thread,
    add_fault_of,
    release_fault,
    fault_hits,
    fault_waiting,
    clear_faults,
    limit_memory,
    last_fault_text,
    watch_races,
    schedule_begin,
    schedule_wait,
    schedule_report,
    schedule_steps,
    schedule_trace,
    schedule_enter,
    schedule_leave,
    schedule_is_on,
    schedule_point,
    schedule_park,
    schedule_unpark,
    schedule_hold,
    schedule_let_go,
    schedule_abandon,
    scheduler::set_detachment,
};

}  // namespace

}  // namespace ftcuda::sim

FTCUDA_SIM_EXPORT const FtcudaSimControl* ftcuda_sim_control() { return &ftcuda::sim::control; }

// What src/ftcuda/_driver/schedule.hpp looks for.
FTCUDA_SIM_EXPORT int ftcuda_schedule_is_on() { return ftcuda::sim::control.schedule_is_on(); }
FTCUDA_SIM_EXPORT void ftcuda_schedule_point(const char* where) { ftcuda::sim::control.schedule_point(where); }
FTCUDA_SIM_EXPORT int ftcuda_schedule_park(const void* key, const char* where) {
    return ftcuda::sim::control.schedule_park(key, where);
}
FTCUDA_SIM_EXPORT void ftcuda_schedule_unpark(const void* key) { ftcuda::sim::control.schedule_unpark(key); }
FTCUDA_SIM_EXPORT void ftcuda_schedule_hold(const void* key) { ftcuda::sim::control.schedule_hold(key); }
FTCUDA_SIM_EXPORT void ftcuda_schedule_let_go(const void* key) { ftcuda::sim::control.schedule_let_go(key); }
