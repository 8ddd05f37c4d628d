// Points at which a test's scheduler may let another thread go on: at driver calls of itself, and, in a build with
// -Dschedule_points=true, at the core's own atomics and locks. Other builds have no trace of them.
//
// A library that brings a scheduler exports ftcuda_schedule_is_on, _point, _park and _unpark; the simulated driver does.
#pragma once

#ifdef FTCUDA_SCHEDULE_POINTS

namespace ftcuda::driver {

class Library;

namespace schedule {

void find(const Library& library);

// The thread must be detached from the interpreter: others run meanwhile.
void point(const char* where) noexcept;

// Whether somebody schedules this thread.
bool is_on() noexcept;

// Waits until another thread calls unpark(key). False at once where nobody schedules this thread.
bool park(const void* key, const char* where) noexcept;
void unpark(const void* key) noexcept;

}  // namespace schedule
}  // namespace ftcuda::driver

#define FTCUDA_SCHEDULE_POINT(where) ::ftcuda::driver::schedule::point(where)

#else
#define FTCUDA_SCHEDULE_POINT(where) static_cast<void>(0)
#endif
