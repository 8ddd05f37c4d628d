// In debug builds (-Ddebug_locks=true): what each thread holds, and where it locked that. Other builds have no trace of
// it.
#pragma once

#include "mutex.hpp"

namespace ftcuda::core::lock_order {

#ifdef FTCUDA_DEBUG_LOCKS

// Aborts, with the names of both and both stacks, if this thread holds a mutex of the same or a higher rank; in a
// forked child, which may lock nothing: the thread that held the lock at the fork is not there; and in a host function,
// if others may hold it during a call of the driver. Such a call aborts if the thread holds any other one.
void check(Rank wanted) noexcept;
void remember(const Mutex& mutex) noexcept;
// Aborts if this thread does not hold it.
void forget(const Mutex& mutex) noexcept;

#else

inline void check(Rank) noexcept {}
inline void remember(const Mutex&) noexcept {}
inline void forget(const Mutex&) noexcept {}

#endif

}  // namespace ftcuda::core::lock_order
