// Threads of the library's own, for what nobody waits for, and for waits in which a thread of the user's must not be
// stuck. Their rules, for all that is made of them:
//
// Such a thread never enters the interpreter. It begins at the first need and sleeps while no service of it is wanted;
// neither it nor its services are ever freed, and it holds no lock during a turn. A forked child has no such thread,
// and wants none. At exit a turn destroys nothing, as nobody does (device/process.hpp). In a context that has failed
// nothing is waited for. A test's scheduler does not know the thread: scheduled threads look after what they leave
// themselves.
#pragma once

#include "../sync/mutex.hpp"

#include <atomic>
#include <chrono>
#include <memory>

namespace ftcuda::core {

class Service;

// The thread, whose services take turns.
class ServiceThread {
public:
    ServiceThread() = default;
    ServiceThread(const ServiceThread&) = delete;
    ServiceThread& operator=(const ServiceThread&) = delete;

    // Of all services that wait for nothing in a turn.
    static const std::shared_ptr<ServiceThread>& common();

private:
    friend class Service;
    using Time = std::chrono::steady_clock::time_point;

    void add(Service& service) noexcept;
    // Throws if there can be no thread.
    void start() EXCLUDES(mutex_);
    void wake() noexcept EXCLUDES(mutex_);
    void run() noexcept EXCLUDES(mutex_);
    void sleep_until(Time time) noexcept EXCLUDES(mutex_);

    // Release when a service is added, before anybody wants it; acquire before its first turn.
    std::atomic<Service*> first_{nullptr};
    // Release and acquire, though it guards no data: who finds that the thread has begun does not take the lock.
    std::atomic<bool> started_{false};

    Mutex mutex_{Rank::service};
    Condition changed_;
    bool woken_ GUARDED_BY(mutex_) = false;
};

class Service {
public:
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    // Starts the thread, if it is not there; throws if there can be none.
    void start() { thread_->start(); }

    // A turn begins after this call, if there is such a thread. Cheap while one is wanted already.
    void wake() noexcept {
        if (!wanted_.load()) want();
    }

protected:
    using Pause = std::chrono::microseconds;
    static constexpr Pause for_ever = Pause::max();

    // `pause`: from when it is wanted to the turn, so that what comes meanwhile is one turn's.
    Service(std::shared_ptr<ServiceThread> thread, Pause pause) noexcept;
    ~Service() = default;

private:
    friend class ServiceThread;

    // How long until there is more to do; for_ever: until it is wanted again.
    virtual Pause turn() noexcept = 0;

    void want() noexcept;
    // By the thread: the turn, if it is due. When the next one is.
    ServiceThread::Time take_turn() noexcept;

    // Constant after construction.
    const std::shared_ptr<ServiceThread> thread_;
    const Pause pause_;
    Service* next_ = nullptr;  // of the thread's

    // Sequentially consistent, as are the counts of what a turn looks for: who adds something, and then finds that a
    // turn is wanted already, has added it for that turn.
    std::atomic<bool> wanted_{false};

    ServiceThread::Time due_ = ServiceThread::Time::max();  // of the thread alone
};

}  // namespace ftcuda::core
