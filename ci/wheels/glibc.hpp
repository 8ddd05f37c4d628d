// For wheels: what libstdc++ of gcc 12 has, and the one of gcc 8, which manylinux_2_28 allows, has not.
#pragma once

#include <new>

#include <bits/c++config.h>
#include <bits/functexcept.h>

// Of glibc 2.30: without them libstdc++ counts limits of waits by the clock that is set, and looks at the other one
// when they are over, as gcc 8 does.
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK

namespace std {

// Called by std::vector and its kin since gcc 11.
[[noreturn]] __attribute__((weak)) void __throw_bad_array_new_length() { throw std::bad_array_new_length(); }

}  // namespace std

// Since gcc 12 it is noexcept, and has a version of its own for that. The older one is in every libstdc++.
__asm__(
    ".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,"
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
