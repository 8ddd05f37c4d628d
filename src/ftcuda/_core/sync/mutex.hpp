// A mutex with a rank. A thread may only lock a mutex of a higher rank than those it holds, and unlock what it holds;
// debug builds (-Ddebug_locks=true) check that and abort with the names of both and where they were locked.
// `docs/design/locks.md` lists every mutex.
#pragma once

#include "annotations.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace ftcuda::core {

enum class Rank : unsigned char {
#define RANK(name, held) name,
#include "ranks.def"
#undef RANK
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
    // The same, or until that time is over.
    void wait_for(Mutex& mutex, std::chrono::microseconds time) REQUIRES(mutex);
    void notify_all() noexcept;

private:
    std::condition_variable condition_;
};

}  // namespace ftcuda::core
