// Points at which a test's scheduler may let another thread go on: at driver calls of itself, and, in a build with
// -Dschedule_points=true, at the core's own atomics and locks. Other builds only say who has a lock, and so is not to
// be held up: who waits for it could not be seen to wait.
//
// A library that brings a scheduler exports ftcuda_schedule_is_on, _point, _park, _park_for_holder, _unpark, _hold,
// _let_go, _give_part, _take_part and _count_locks; the simulated driver does.
#pragma once

#ifdef FTCUDA_SCHEDULE_POINTS

namespace ftcuda::driver {

class Library;

namespace schedule {

void find(const Library& library);

// Others run meanwhile. A thread that is attached to the interpreter is not while it waits.
void point(const char* where) noexcept;

// Whether somebody schedules this thread.
bool is_on() noexcept;

// Waits until another thread calls unpark(key). False at once where nobody schedules this thread.
bool park(const void* key, const char* where) noexcept;
// The same for what is held: by a thread that said hold(key), or by one that nobody schedules. Try again after it.
bool park_for_holder(const void* key, const char* where) noexcept;
void unpark(const void* key) noexcept;

// That this thread holds what others park for.
void hold(const void* key) noexcept;
void let_go(const void* key) noexcept;

// Another thread goes on in the place of this one, which waits for it meanwhile in a way that nobody schedules: it
// takes what give_part() returned, null where nobody schedules the thread. So does this one, when it goes on itself.
void* give_part() noexcept;
void take_part(void* part) noexcept;

// Nothing here: whoever waits parks.
inline void note_lock(int) noexcept {}

}  // namespace schedule
}  // namespace ftcuda::driver

#define FTCUDA_SCHEDULE_POINT(where) ::ftcuda::driver::schedule::point(where)

#else

#include <atomic>

namespace ftcuda::driver {

class Library;

namespace schedule {

void find(const Library& library);

// Stored once with release, when the driver is loaded; null where it brings no scheduler.
extern std::atomic<void (*)(int change)> count_locks;

// That this thread has taken a lock, or given one back.
inline void note_lock(int change) noexcept {
    if (const auto count = count_locks.load(std::memory_order_acquire)) count(change);
}

}  // namespace schedule
}  // namespace ftcuda::driver

#define FTCUDA_SCHEDULE_POINT(where) static_cast<void>(0)
#endif
