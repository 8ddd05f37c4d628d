// Calls of the caller's code that nobody waits for, each known by an address: one thread takes and makes them, one
// after the other, so that they never come amid somebody else's code, which may hold the lock that they take.
//
// A test's scheduler does not know that thread. What its threads put is taken by themselves, in their later calls.
#pragma once

#include "../sync/reason.hpp"

#include <cstddef>

namespace ftcuda::core {

struct Limit;

namespace handover {

// Nothing in a forked child, which has no such thread: the call is lost.
void put(void* call);

// True for who must start the thread: nobody has, or who had could not.
bool claim_thread() noexcept;
void give_claim_back() noexcept;

// The next call, for which it waits; null if the thread is to let go of what is over (deferred_release.hpp), and to say
// then that it has. For the thread alone.
void* take();
void end_release() noexcept;
// Whether it does so just now.
bool is_releasing() noexcept;
// The same for a thread that somebody schedules; null for others, and if there is none.
void* take_scheduled();
// What was taken is over.
void finish() noexcept;

// How many were put and are not over.
std::size_t unfinished() noexcept;

// Waits until so many are left at most.
Status wait_until_at_most(std::size_t wanted, const Limit& limit) noexcept;

// Makes the thread, if there is one, let go of what is over: nobody else has done so for a while.
void ask_for_release() noexcept;

// The thread takes what a schedule has left.
void adopt_scheduled();

}  // namespace handover
}  // namespace ftcuda::core
