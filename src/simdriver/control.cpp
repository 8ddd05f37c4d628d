// The control surface.
#include "control.hpp"

#include "calls/faults.hpp"
#include "calls/gate.hpp"
#include "checkers/races.hpp"
#include "schedule/clock.hpp"
#include "schedule/scheduler.hpp"
#include "timeline/stream.hpp"
#include "timeline/timeline.hpp"

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
        if (allocation.of_graph && !allocation.of_graph->is_allocated) continue;  // no more than an address
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
    case FTCUDA_SIM_GRAPH: return state.graphs.size();
    case FTCUDA_SIM_EXECUTABLE: return state.executables.size();
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
    if (is_forked()) return;
    Guard lock(driver_state().mutex);
    scheduler::leave(lock);
}

int schedule_is_on() { return scheduler::is_scheduled() ? 1 : 0; }
void schedule_point(const char* where) { scheduler::point(where); }

int schedule_park(const void* key, const char* where) { return scheduler::park(key, where) ? 1 : 0; }
int schedule_park_for_holder(const void* key, const char* where) {
    return scheduler::park_for_holder(key, where) ? 1 : 0;
}

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
    if (!scheduler::is_active()) return;
    const Guard lock(driver_state().mutex);
    scheduler::let_go(key);
}

int clock_begin() {
    const Guard lock(driver_state().mutex);
    if (clock::is_a_tests()) return 0;
    clock::begin_of_test();
    return 1;
}

void clock_end() {
    const Guard lock(driver_state().mutex);
    clock::end_of_test();
}

std::int64_t clock_now() {
    const Guard lock(driver_state().mutex);
    return clock::since_begin_of_test();
}

std::uint64_t clock_waiting() {
    const Guard lock(driver_state().mutex);
    return clock::waiting();
}

// With a limit of the real time.
bool wait_for_progress(Guard& lock, std::uint64_t milliseconds, const std::function<bool()>& ready) {
    return driver_state().progress.wait_for(lock, std::chrono::milliseconds(milliseconds), ready);
}

int clock_wait(unsigned threads, std::uint64_t milliseconds) {
    Guard lock(driver_state().mutex);
    return wait_for_progress(lock, milliseconds, [&] { return clock::waiting() >= threads; }) ? 1 : 0;
}

// One thread moves the clock at a time: the driver's lock is let go of while it waits for what it has set off.
bool is_advancing = false;  // under that lock
struct Advance {
    Advance() noexcept { is_advancing = true; }
    Advance(const Advance&) = delete;
    Advance& operator=(const Advance&) = delete;
    ~Advance() {
        is_advancing = false;
        driver_state().progress.notify_all();
    }
};

// From one time that somebody waits for to the next, so that each has its effect before the next one comes.
int clock_advance(std::int64_t nanoseconds, std::uint64_t milliseconds) {
    Guard lock(driver_state().mutex);
    if (!wait_for_progress(lock, milliseconds, [] { return !is_advancing; })) return 0;
    const Advance advance;
    if (nanoseconds > clock::end_of_time - clock::now()) return -1;
    const clock::Nanoseconds target = clock::after(clock::now(), nanoseconds);
    if (scheduler::is_active()) {  // which decides when the effects come
        clock::move(target);
        scheduler::look_at_limit();
        return 1;
    }
    do {
        if (!wait_for_progress(lock, milliseconds, scheduler::workers_have_settled)) return 0;
        const clock::Nanoseconds next = std::min({target, scheduler::next_end(), clock::next_limit()});
        clock::move_for_work(next);
        if (!wait_for_progress(lock, milliseconds, scheduler::workers_have_settled)) return 0;
        clock::move(next);
        if (!wait_for_progress(lock, milliseconds, clock::all_are_settled)) return 0;
    } while (clock::now() < target);
    return 1;
}

int clock_delay(void* handle, std::int64_t nanoseconds) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(static_cast<CUstream>(handle), stream); result != CUDA_SUCCESS)
        return result;
    Work work;
    work.what = "delay";
    work.takes = nanoseconds;
    submit(*stream, std::move(work));
    return CUDA_SUCCESS;
}

// What a wait of a thread has here, from its first pause on.
struct Pauses {
    clock::Waiter waiter;
    bool has_joined = false;
};

int look(std::int64_t* now, std::uint64_t* seen) {
    if (scheduler::is_active() && scheduler::is_scheduled()) {
        *seen = scheduler::turns();
        *now = clock::now();
        return 1;
    }
    if (!clock::is_a_tests()) return 0;
    const Guard lock(driver_state().mutex);
    *seen = clock::moves();
    *now = clock::now();
    return 1;
}

int pause(void** wait, std::int64_t until, std::uint64_t seen) {
    if (*wait == nullptr) *wait = new Pauses;
    if (scheduler::pause(until, seen)) return 1;
    if (!clock::is_a_tests()) return 0;
    Pauses& pauses = *static_cast<Pauses*>(*wait);
    Guard lock(driver_state().mutex);
    if (!pauses.has_joined) clock::join(pauses.waiter);
    pauses.has_joined = true;
    clock::pause(lock, pauses.waiter, seen, until);
    return 1;
}

void* fall_asleep() {
    if (!clock::is_a_tests()) return nullptr;
    auto* const pauses = new Pauses{{}, true};
    const Guard lock(driver_state().mutex);
    clock::join_asleep(pauses->waiter);
    return pauses;
}

void end_pauses(void* wait) {
    scheduler::end_pauses();
    Pauses* const pauses = static_cast<Pauses*>(wait);
    if (pauses->has_joined) {
        const Guard lock(driver_state().mutex);
        clock::leave(pauses->waiter);
    }
    delete pauses;
}

const FtcudaSimControl control = {
    4,
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
    schedule_park_for_holder,
    schedule_unpark,
    schedule_hold,
    schedule_let_go,
    schedule_abandon,
    scheduler::set_detachment,
    clock_begin,
    clock_end,
    clock_now,
    clock_waiting,
    clock_wait,
    clock_advance,
    clock_delay,
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
FTCUDA_SIM_EXPORT int ftcuda_schedule_park_for_holder(const void* key, const char* where) {
    return ftcuda::sim::control.schedule_park_for_holder(key, where);
}
FTCUDA_SIM_EXPORT void ftcuda_schedule_unpark(const void* key) { ftcuda::sim::control.schedule_unpark(key); }
FTCUDA_SIM_EXPORT void ftcuda_schedule_hold(const void* key) { ftcuda::sim::control.schedule_hold(key); }
FTCUDA_SIM_EXPORT void ftcuda_schedule_let_go(const void* key) { ftcuda::sim::control.schedule_let_go(key); }
FTCUDA_SIM_EXPORT void ftcuda_schedule_count_locks(int change) { ftcuda::sim::scheduler::count_locks(change); }
FTCUDA_SIM_EXPORT void* ftcuda_schedule_give_part() { return ftcuda::sim::scheduler::give_part(); }
FTCUDA_SIM_EXPORT void ftcuda_schedule_take_part(void* part) { ftcuda::sim::scheduler::take_part(part); }

// What src/ftcuda/_driver/background.hpp looks for.
FTCUDA_SIM_EXPORT int ftcuda_background_may_go_on() {
    ftcuda::sim::leave_out_thread();
    return ftcuda::sim::scheduler::is_active() ? 0 : 1;
}

// What src/ftcuda/_driver/clock.hpp looks for, beside ftcuda_clock_ask_context.
FTCUDA_SIM_EXPORT int ftcuda_clock_look(std::int64_t* now, std::uint64_t* seen) { return ftcuda::sim::look(now, seen); }
FTCUDA_SIM_EXPORT int ftcuda_clock_pause(void** wait, std::int64_t until, std::uint64_t seen) {
    return ftcuda::sim::pause(wait, until, seen);
}
FTCUDA_SIM_EXPORT void* ftcuda_clock_fall_asleep() { return ftcuda::sim::fall_asleep(); }
FTCUDA_SIM_EXPORT void ftcuda_clock_end(void* wait) { ftcuda::sim::end_pauses(wait); }
