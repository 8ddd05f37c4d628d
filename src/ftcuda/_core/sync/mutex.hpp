// A mutex with a rank. A thread may only lock a mutex of a higher rank than those it holds, and unlock what it holds; debug
// builds (-Ddebug_locks=true) check that and abort with the names of both and where they were locked. `docs/design/locks.md`
// lists every mutex.
#pragma once

#include "annotations.hpp"

#include <condition_variable>
#include <mutex>

namespace ftcuda::core {

// Outermost first.
enum class Rank : unsigned char {
    module,             // which devices a module is loaded on, or being loaded on
    allowance,          // what the driver was told about kernels' dynamic shared memory
    striped,            // what many threads take and few replace: a bound launch's arguments, a tensor map
    stripe,             // some threads' copy of it
    exclusive_section,  // who holds a stream's exclusive section
    kept,               // objects of the caller's that wait for work
    caches,             // which caching resources there are
    cache,              // what a caching resource has in store
    context_wait,       // which waits for all of a context were asked for
    staging,            // chunks for copies of pageable memory
    event_pool,         // idle events of a context
    retired,            // what is freed at the next synchronisation of a context
    account,            // what was allocated through a counting or limiting resource
    mailbox,            // failures of destructors
};

class FTCUDA_CAPABILITY("mutex") Mutex {
public:
    explicit Mutex(Rank rank) noexcept : rank_(rank) {}
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;

    Rank rank() const noexcept { return rank_; }

    void lock() ACQUIRE();
    void unlock() RELEASE();

private:
    friend class Condition;
    std::mutex mutex_;
    const Rank rank_;
};

class FTCUDA_SCOPED_CAPABILITY Lock {
public:
    explicit Lock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~Lock() RELEASE() { mutex_.unlock(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

private:
    Mutex& mutex_;
};

class Condition {
public:
    // Releases `mutex`, waits for notify_all or a spurious wake-up, and takes `mutex` again.
    void wait(Mutex& mutex) REQUIRES(mutex);
    void notify_all() noexcept;

private:
    std::condition_variable condition_;
};

}  // namespace ftcuda::core
