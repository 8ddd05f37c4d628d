// clang's thread-safety attributes: which field needs which lock, checked by the compiler (`ci/locks.sh`). Other
// compilers see nothing.
#pragma once

#if defined(__clang__)
#define FTCUDA_ATTRIBUTE(x) __attribute__((x))
#else
#define FTCUDA_ATTRIBUTE(x)
#endif

#define FTCUDA_CAPABILITY(name) FTCUDA_ATTRIBUTE(capability(name))
#define FTCUDA_SCOPED_CAPABILITY FTCUDA_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(mutex) FTCUDA_ATTRIBUTE(guarded_by(mutex))
#define REQUIRES(...) FTCUDA_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) FTCUDA_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) FTCUDA_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) FTCUDA_ATTRIBUTE(release_capability(__VA_ARGS__))
// A function that takes a lock for another one to give back.
#define NOT_ANALYSED FTCUDA_ATTRIBUTE(no_thread_safety_analysis)
