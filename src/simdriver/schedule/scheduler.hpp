// The seeded scheduler: of the threads it knows one runs at a time, and at every point the seed says which goes on.
//
// A session begins when nothing runs, with a number of threads that a test starts; the streams' workers take part in
// it. It ends when the last of those threads leaves. Outside a session, and for threads that are not in it, everything
// runs freely. All state is under the driver's lock, which no thread keeps while it waits for its turn.
//
// In a session time is simulated: when all wait, and some of them for a time, the clock is set to the first such time.
//
// A thread that waits has a condition, which the scheduler itself evaluates: when nobody can go on, that is a deadlock,
// and where everybody stands is known.
//
// A thread that waits for its turn may be attached to an interpreter: the one that has the turn may need it, or may
// need all others to leave it for a moment. So whoever knows about the interpreter says how to let go of it
// (set_detachment).
#pragma once

#include "../state/driver_state.hpp"
#include "clock.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <string>

namespace ftcuda::sim::scheduler {

enum class Kind : int { random, pct };

struct Plan {
    Kind kind = Kind::random;
    unsigned depth = 0;  // PCT: one more than the times that a thread loses its priority
    std::uint64_t seed = 0;
};

// A thread that the scheduler knows.
struct Thread {
    std::uint64_t index = 0;  // a test's thread: the test's own; a worker: in the order of creation
    bool is_worker = false;
    std::atomic<bool> abandoned{
        false};  // its session ended badly. Relaxed: only the thread itself asks without the lock
    const char* where = "start";
    const void* parked_on = nullptr;          // until somebody unparks it
    std::function<bool()> ready;              // what it waits for, empty if nothing
    clock::Nanoseconds until = clock::never;  // when it waits no longer
    bool runs_long = false;                   // a worker in a kernel that may wait for the host
    bool polls = false;                       // it waits for what it must ask for itself, and has asked before
    unsigned moments = 0;                     // that it has waited for a thread outside of the session
    std::uint64_t priority = 0;               // PCT
    unsigned passed_over = 0;                 // PCT: how often it could have gone on since it last did
    std::condition_variable turn;
    std::condition_variable* waits_on = nullptr;  // while it runs freely and waits
};

enum class Ending : int { finished, deadlock, stuck, late };

// Waits until all workers are idle, then prepares a session for `threads` threads. False if one is under way.
bool begin(Guard& lock, const Plan& plan, unsigned threads);
// Waits until the session is over, nobody can go on, the thread whose turn it is has done nothing for 20 s, or the time
// is over: that of the test's own clock, where it has one. Unless the session is over all its threads stand where they
// are, to be looked at, until abandon(); then they run freely. abandon() ends a session that is waited for, too.
Ending wait(Guard& lock, std::chrono::milliseconds limit);
void abandon(Guard& lock);
// In the child of a fork, where none of the others is: its thread runs freely.
void forget_session() noexcept;
void look_at_limit();  // the test has moved its clock
std::string report();  // who stood where when the session ended badly, and who held what they waited for
std::uint64_t steps() noexcept;
std::uint64_t trace() noexcept;  // a hash of every choice

// For a thread of the test: waits until all are there and it is its turn; ends its part.
void enter(Guard& lock, std::uint64_t index);
void leave(Guard& lock);

// Whether a session is under way; for threads outside of it a hint.
bool is_active() noexcept;
// Whether the calling thread takes part in it.
bool is_scheduled() noexcept;

// Whether the calling thread has locks of the library whose calls are scheduled, which says so where these are no
// points. Nobody else goes on then: who waits for such a lock would keep its turn.
bool has_locks() noexcept;
void count_locks(int change) noexcept;

// A place where another thread may go on instead. `where` must live for ever.
void point(Guard& lock, const char* where);
// The same without the lock, which it takes only in a session.
void point(const char* where);

// Waits until somebody calls unpark(key). False, at once, if the thread takes no part in a session; or when the session
// ended meanwhile.
bool park(const void* key, const char* where);
void unpark(const void* key);
// The same for what is held, to try again after it. If no scheduled thread holds it, one outside of the session does,
// whose unpark() nobody waits for: a moment of real time passes, and the others go on only if many have passed.
bool park_for_holder(const void* key, const char* where);

// A wait for what the scheduler cannot see: the thread asks again after a turn of somebody else who does not poll as
// well, or when the clock has reached `until`. `seen`: turns() as they were before it asked. False, at once, as above.
std::uint64_t turns();
bool pause(clock::Nanoseconds until, std::uint64_t seen);
void end_pauses();

// That this thread holds what others park for.
void hold(const void* key);
void let_go(const void* key);

// Another thread goes on as this one, from its take_part(), until it gives the part back. Null, and nothing is given,
// if the thread takes no part in a session.
void* give_part();
void take_part(void* part);

// How a thread lets go of its interpreter while it waits for its turn: `detach` returns null if there is nothing to let
// go of, else what `attach` takes. Never called with the driver's lock held.
void set_detachment(void* (*detach)(), void (*attach)(void*)) noexcept;

// For a clock that a test moves, outside of a session: whether all workers wait, or run long; and the first time that
// one of them waits for.
bool workers_have_settled();
clock::Nanoseconds next_end();
void set_runs_long(bool runs_long);  // the calling worker; without the lock

// For a stream's worker, made by the thread that submits to it first.
std::shared_ptr<Thread> add_worker();
void withdraw(const std::shared_ptr<Thread>& worker);  // one whose thread could not be started
void adopt(Guard& lock, const std::shared_ptr<Thread>& worker);
void remove(Guard& lock, const std::shared_ptr<Thread>& worker);

// Waits for `ready`, which depends only on what the driver's lock guards. In a session by the scheduler, else on
// `changed`. It may come back before when the clock has reached `until`.
void wait_until(Guard& lock, std::condition_variable& changed, const char* where, const std::function<bool()>& ready,
                clock::Nanoseconds until = clock::never);

}  // namespace ftcuda::sim::scheduler
