#include "scheduler.hpp"

#include "../state/per_thread.hpp"

#include <algorithm>
#include <chrono>
#include <map>

namespace ftcuda::sim::scheduler {

namespace {

// PCT draws the steps at which a priority is lost from as many.
constexpr std::uint64_t expected_steps = 400;
// A thread that polls must not run for ever: after so many steps in a row it is the last in line.
constexpr unsigned patience = 200;
// Nor must two that poll by turns: who was passed over so often goes first.
constexpr unsigned starvation = 2'000;
constexpr std::chrono::milliseconds silence{20'000};
// A thread outside of the session gives a lock back soon, unless it waits for what one of the session holds.
constexpr std::chrono::milliseconds moment{1};
constexpr unsigned many_moments = 100;

struct State {
    std::atomic<bool> active{false};  // relaxed: a hint for threads outside of a session; those inside have the lock
    bool prepared = false;
    unsigned expected = 0;
    Plan plan;
    std::vector<std::shared_ptr<Thread>> threads;  // the test's by index, then workers in the order of creation
    Thread* running = nullptr;
    std::uint64_t random = 0;
    std::vector<std::uint64_t> demotions;
    std::uint64_t lowest = 0;
    std::uint64_t highest = 0;
    unsigned in_a_row = 0;
    std::uint64_t steps = 0;
    std::uint64_t turns = 0;  // that were over, of threads that did not poll
    std::uint64_t trace = 0;
    std::uint64_t workers = 0;
    Ending ending = Ending::finished;
    bool failed = false;                         // everybody stands where they are until abandon()
    std::map<const void*, std::string> holders;  // of what others park for
    std::string report;
    std::condition_variable over;
};

State& state() noexcept {
    static State& only = *new State;  // never destroyed: workers may outlive the static objects
    return only;
}

std::shared_ptr<Thread>& self() noexcept {
    static const PerThread<std::shared_ptr<Thread>> mine;
    return *mine;
}

// Both are stored once, `detach` last with release; a thread reads it with acquire, and then the other.
std::atomic<void* (*)()> how_to_detach{nullptr};
std::atomic<void (*)(void*)> how_to_attach{nullptr};

// Lets go of the interpreter for one scope, in which the thread waits for its turn: with the GIL nobody else could have
// one. Made before the driver's lock is taken and ended after that is given back, since attaching again may wait.
class Detached {
public:
    Detached() {
        if (void* (*const detach)() = how_to_detach.load(std::memory_order_acquire)) token_ = detach();
    }
    ~Detached() {
        if (token_ != nullptr) how_to_attach.load(std::memory_order_relaxed)(token_);
    }
    Detached(const Detached&) = delete;
    Detached& operator=(const Detached&) = delete;

private:
    void* token_ = nullptr;
};

// SplitMix64.
std::uint64_t next_random(std::uint64_t& seed) noexcept {
    seed += 0x9e37'79b9'7f4a'7c15;
    std::uint64_t mixed = seed;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58'476d'1ce4'e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d0'49bb'1331'11eb;
    return mixed ^ (mixed >> 31);
}

void hash(std::uint64_t value) noexcept {
    state().trace = (state().trace ^ value) * 0x0000'0100'0000'01b3;  // FNV-1a, a word at a time
}

bool can_go_on(const Thread& thread) {
    if (thread.until != clock::never && clock::now() >= thread.until) return true;
    return thread.parked_on == nullptr && (!thread.ready || thread.ready());
}

std::vector<Thread*> those_who_can_go_on() {
    std::vector<Thread*> candidates;
    for (const std::shared_ptr<Thread>& thread : state().threads) {
        if (can_go_on(*thread)) candidates.push_back(thread.get());
    }
    return candidates;
}

// Sets the clock to the first time that somebody waits for. False if nobody does.
bool jump() {
    const std::vector<std::shared_ptr<Thread>>& threads = state().threads;
    const auto first = std::min_element(threads.begin(), threads.end(),
                                        [](const auto& a, const auto& b) { return a->until < b->until; });
    if (first == threads.end() || (*first)->until == clock::never) return false;
    clock::jump((*first)->until);
    return true;
}

void wake(Thread& thread) {
    thread.turn.notify_all();
    if (thread.waits_on != nullptr) thread.waits_on->notify_all();
}

std::string name(const Thread& thread) {
    return (thread.is_worker ? "worker " : "thread ") + std::to_string(thread.index);
}

// Nobody gets a turn any more, so that everybody can be looked at where they are.
void fail(Ending ending) {
    State& s = state();
    s.failed = true;
    s.running = nullptr;
    s.ending = ending;
    s.report.clear();
    for (const std::shared_ptr<Thread>& thread : s.threads) {
        s.report += name(*thread) + " at " + thread->where;
        const auto holder = s.holders.find(thread->parked_on);
        if (thread->parked_on != nullptr && holder != s.holders.end()) s.report += ", held by " + holder->second;
        if (thread->moments != 0) s.report += ", held by a thread that is not scheduled";
        s.report += '\n';
    }
    s.over.notify_all();
}

// Everything runs freely from here on.
void end() {
    State& s = state();
    s.active.store(false, std::memory_order_relaxed);
    s.prepared = false;
    s.failed = false;
    s.running = nullptr;
    s.holders.clear();
    clock::end_of_session();
    for (const std::shared_ptr<Thread>& thread : s.threads) {
        thread->parked_on = nullptr;
        if (!thread->is_worker) thread->abandoned.store(true, std::memory_order_relaxed);
        wake(*thread);
    }
    s.threads.erase(
        std::remove_if(s.threads.begin(), s.threads.end(), [](const auto& thread) { return !thread->is_worker; }),
        s.threads.end());
    s.over.notify_all();
}

Thread* choose_by_priority(const std::vector<Thread*>& candidates) {
    State& s = state();
    const bool demoted = std::find(s.demotions.begin(), s.demotions.end(), s.steps) != s.demotions.end();
    if (s.running != nullptr && (demoted || s.in_a_row > patience)) {
        s.running->priority = --s.lowest;
        s.in_a_row = 0;
    }
    for (Thread* const candidate : candidates) {
        if (++candidate->passed_over <= starvation) continue;
        candidate->priority = ++s.highest;
        candidate->passed_over = 0;
    }
    return *std::max_element(candidates.begin(), candidates.end(),
                             [](Thread* a, Thread* b) { return a->priority < b->priority; });
}

// Gives the turn to the next thread, perhaps to the one that has it.
void choose() {
    State& s = state();
    if (s.failed) return;
    if (s.running == nullptr || !s.running->polls) ++s.turns;
    std::vector<Thread*> candidates = those_who_can_go_on();
    if (candidates.empty() && jump()) candidates = those_who_can_go_on();
    if (candidates.empty()) return fail(Ending::deadlock);
    ++s.steps;
    Thread* const next = s.plan.kind == Kind::pct ? choose_by_priority(candidates)
                                                  : candidates[next_random(s.random) % candidates.size()];
    s.in_a_row = next == s.running ? s.in_a_row + 1 : 0;
    s.running = next;
    next->passed_over = 0;
    hash(next->index * 2 + (next->is_worker ? 1 : 0));
    for (const char* letter = next->where; *letter != '\0'; ++letter) hash(static_cast<unsigned char>(*letter));
    wake(*next);
}

// A thread whose session ended badly takes no part in the next one.
bool takes_part(const Thread& thread) noexcept {
    return is_active() && !thread.abandoned.load(std::memory_order_relaxed);
}

void wait_for_turn(Guard& lock, Thread& thread) {
    while (takes_part(thread) && state().running != &thread) thread.turn.wait(lock);
}

void draw_priority(Thread& thread) {
    std::uint64_t seed = state().plan.seed ^ (thread.index * 2 + (thread.is_worker ? 1 : 0)) * 0x2545'f491'4f6c'dd1d;
    thread.priority =
        (next_random(seed) >> 1) | (std::uint64_t{1} << 62);  // above all that were demoted, below all that starved
    thread.passed_over = 0;
}

bool workers_are_idle() {
    const std::vector<std::shared_ptr<Thread>>& threads = state().threads;
    return std::all_of(threads.begin(), threads.end(),
                       [](const auto& thread) { return thread->ready && !thread->ready(); });
}

}  // namespace

bool workers_have_settled() {
    const std::vector<std::shared_ptr<Thread>>& threads = state().threads;
    return std::all_of(threads.begin(), threads.end(), [](const auto& thread) {
        return !thread->is_worker || thread->runs_long || (thread->ready && !thread->ready());
    });
}

clock::Nanoseconds next_end() {
    clock::Nanoseconds next = clock::never;
    for (const std::shared_ptr<Thread>& thread : state().threads) {
        if (thread->until > clock::now()) next = std::min(next, thread->until);
    }
    return next;
}

void set_runs_long(bool runs_long) {
    const Guard lock(driver_state().mutex);
    if (self() == nullptr) return;
    self()->runs_long = runs_long;
    driver_state().progress.notify_all();
}

bool begin(Guard& lock, const Plan& plan, unsigned threads) {
    State& s = state();
    if (s.prepared) return false;
    while (!workers_are_idle()) driver_state().progress.wait(lock);
    s.prepared = true;
    s.expected = threads;
    s.plan = plan;
    s.random = plan.seed;
    s.lowest = std::uint64_t{1} << 61;
    s.highest = std::uint64_t{1} << 63;
    s.steps = s.turns = s.in_a_row = 0;
    s.trace = 0xcbf2'9ce4'8422'2325;
    s.ending = Ending::finished;
    s.report.clear();
    s.demotions.clear();
    for (unsigned change = 1; change < plan.depth; ++change)
        s.demotions.push_back(1 + next_random(s.random) % expected_steps);
    // Counted anew: what happened before the session must not change its trace.
    s.workers = 0;
    for (const std::shared_ptr<Thread>& worker : s.threads) {
        worker->index = s.workers++;
        draw_priority(*worker);
    }
    return true;
}

Ending wait(Guard& lock, std::chrono::milliseconds limit) {
    State& s = state();
    const auto deadline = std::chrono::steady_clock::now() + limit;
    const bool is_a_tests = clock::is_a_tests();
    const clock::Nanoseconds limit_of_test = std::chrono::nanoseconds(limit).count();
    const auto is_late = [&] {
        return is_a_tests ? clock::moved() >= limit_of_test : std::chrono::steady_clock::now() >= deadline;
    };
    while (s.prepared && !s.failed) {
        if (is_late()) {
            fail(Ending::late);
            break;
        }
        const std::uint64_t before = s.steps;
        const auto quiet_until = std::chrono::steady_clock::now() + silence;
        const auto look_at = is_a_tests ? quiet_until : std::min(quiet_until, deadline);
        if (s.over.wait_until(lock, look_at) != std::cv_status::timeout) continue;
        if (s.prepared && !s.failed && !is_late() && s.steps == before) fail(Ending::stuck);
    }
    return s.ending;
}

void abandon(Guard&) {
    State& s = state();
    if (s.prepared && !s.failed) fail(Ending::late);
    if (s.failed) end();
}

void forget_session() noexcept {
    self().reset();
    state().active.store(false, std::memory_order_relaxed);
}

void look_at_limit() { state().over.notify_all(); }

std::string report() { return state().report; }
std::uint64_t steps() noexcept { return state().steps; }
std::uint64_t trace() noexcept { return state().trace; }

void enter(Guard& lock, std::uint64_t index) {
    State& s = state();
    const std::shared_ptr<Thread> me = self() = std::make_shared<Thread>();
    me->index = index;
    if (!s.prepared || s.failed) {  // it came when the time was over
        me->abandoned.store(true, std::memory_order_relaxed);
        return;
    }
    draw_priority(*me);
    const auto place = std::find_if(s.threads.begin(), s.threads.end(),
                                    [&](const auto& other) { return other->is_worker || other->index > index; });
    s.threads.insert(place, me);
    if (--s.expected == 0) {
        s.active.store(true, std::memory_order_relaxed);
        clock::begin_of_session();
        choose();
    }
    while (!me->abandoned.load(std::memory_order_relaxed) && s.prepared && (s.expected != 0 || s.running != me.get()))
        me->turn.wait(lock);
}

void leave(Guard&) {
    State& s = state();
    const std::shared_ptr<Thread> me = std::move(self());
    if (me == nullptr || me->abandoned.load(std::memory_order_relaxed)) return;
    withdraw(me);
    if (!is_active()) return;
    const bool last =
        std::all_of(s.threads.begin(), s.threads.end(), [](const auto& thread) { return thread->is_worker; });
    if (last && !s.failed) return end();
    s.running = nullptr;
    choose();
}

bool is_active() noexcept { return state().active.load(std::memory_order_relaxed); }
bool is_scheduled() noexcept { return self() != nullptr && takes_part(*self()); }

static thread_local int locks = 0;

bool has_locks() noexcept { return locks != 0; }
void count_locks(int change) noexcept { locks = std::max(0, locks + change); }  // some were taken before we were asked

void point(Guard& lock, const char* where) {
    if (!is_scheduled()) return;
    self()->where = where;
    choose();
    wait_for_turn(lock, *self());
}

void point(const char* where) {
    if (!is_scheduled()) return;
    const Detached detached;
    Guard lock(driver_state().mutex);
    point(lock, where);
}

bool park(const void* key, const char* where) {
    if (!is_scheduled()) return false;
    const Detached detached;
    Guard lock(driver_state().mutex);
    self()->where = where;
    self()->parked_on = key;
    choose();
    wait_for_turn(lock, *self());
    return is_scheduled();
}

bool park_for_holder(const void* key, const char* where) {
    if (!is_scheduled()) return false;
    const Detached detached;
    Guard lock(driver_state().mutex);
    Thread& me = *self();
    me.where = where;
    if (state().holders.count(key) != 0) {
        me.parked_on = key;
        choose();
    } else {
        me.turn.wait_for(lock, moment);
        if (++me.moments % many_moments == 0) choose();
    }
    wait_for_turn(lock, me);
    return is_scheduled();
}

void unpark(const void* key) {
    for (const std::shared_ptr<Thread>& thread : state().threads) {
        if (thread->parked_on == key) thread->parked_on = nullptr;
    }
}

std::uint64_t turns() {
    const Guard lock(driver_state().mutex);
    return state().turns;
}

bool pause(clock::Nanoseconds until, std::uint64_t seen) {
    if (!is_scheduled()) return false;
    const Detached detached;
    Guard lock(driver_state().mutex);
    State& s = state();
    Thread& me = *self();
    if (!me.polls) {  // what it did in this turn before it asked is news to others, and not to itself
        if (seen == s.turns) ++seen;
        ++s.turns;
        me.polls = true;
    }
    me.ready = [&s, seen] { return s.turns != seen; };
    me.until = until;
    me.where = "wait for work";
    choose();
    wait_for_turn(lock, me);
    me.ready = nullptr;
    me.until = clock::never;
    return is_scheduled();
}

void end_pauses() {
    if (self() == nullptr) return;
    const Guard lock(driver_state().mutex);
    self()->polls = false;
}

void hold(const void* key) {
    if (!is_scheduled()) return;
    state().holders[key] = name(*self());
    self()->moments = 0;
}

void let_go(const void* key) { state().holders.erase(key); }

void* give_part() { return is_scheduled() ? new std::shared_ptr<Thread>(std::move(self())) : nullptr; }

void take_part(void* part) {
    const std::unique_ptr<std::shared_ptr<Thread>> given(static_cast<std::shared_ptr<Thread>*>(part));
    self() = std::move(*given);
}

void set_detachment(void* (*detach)(), void (*attach)(void*)) noexcept {
    how_to_attach.store(attach, std::memory_order_relaxed);
    how_to_detach.store(detach, std::memory_order_release);
}

std::shared_ptr<Thread> add_worker() {
    State& s = state();
    auto worker = std::make_shared<Thread>();
    worker->is_worker = true;
    worker->index = s.workers++;
    draw_priority(*worker);
    s.threads.push_back(worker);
    return worker;
}

void withdraw(const std::shared_ptr<Thread>& worker) {
    State& s = state();
    s.threads.erase(std::remove(s.threads.begin(), s.threads.end(), worker), s.threads.end());
}

void adopt(Guard& lock, const std::shared_ptr<Thread>& worker) {
    self() = worker;
    wait_for_turn(lock, *worker);
}

void remove(Guard&, const std::shared_ptr<Thread>& worker) {
    withdraw(worker);
    self().reset();
    if (is_active()) {
        state().running = nullptr;
        choose();
    } else {
        driver_state().progress.notify_all();  // begin() may wait for it
    }
}

void wait_until(Guard& lock, std::condition_variable& changed, const char* where, const std::function<bool()>& ready,
                clock::Nanoseconds until) {
    if (self() == nullptr) {
        while (!ready()) changed.wait(lock);
        return;
    }
    State& s = state();
    Thread& me = *self();
    me.ready = ready;
    me.until = until;
    me.where = where;
    if (takes_part(me)) choose();
    for (;;) {
        if (takes_part(me)) {
            if (s.running == &me) break;
            me.turn.wait(lock);
        } else {
            if (ready()) break;
            if (me.is_worker) driver_state().progress.notify_all();  // begin() waits for idle workers
            me.waits_on = &changed;
            changed.wait(lock);
            me.waits_on = nullptr;
        }
    }
    me.ready = nullptr;
    me.until = clock::never;
}

}  // namespace ftcuda::sim::scheduler
