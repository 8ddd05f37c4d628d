// A thread of the library's own, for what nobody waits for, and for waits in which a thread of the user's must not be
// stuck. Its rules, for all that is made of it:
//
// It never enters the interpreter. It begins at the first need and sleeps while it is not wanted; neither it nor its
// object is ever freed, and it holds no lock during a turn. A forked child has no such thread, and wants none. At exit
// a turn destroys nothing, as nobody does (device/process.hpp). In a context that has failed nothing is waited for. A
// test's scheduler does not know the thread: scheduled threads look after what they leave themselves.
#pragma once

#include "../sync/mutex.hpp"

#include <atomic>
#include <chrono>

namespace ftcuda::core {

class Service {
public:
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    // Starts the thread, if it is not there; throws if there can be none.
    void start() EXCLUDES(mutex_);

    // A turn begins after this call, if there is such a thread. Cheap while one is wanted already.
    void wake() noexcept EXCLUDES(mutex_) {
        if (!wanted_.load()) want();
    }

protected:
    // `pause`: from when it is wanted to the turn, so that what comes meanwhile is one turn's.
    explicit Service(std::chrono::milliseconds pause) noexcept : pause_(pause) {}
    ~Service() = default;

private:
    // True if there is more to do, in a turn to come.
    virtual bool turn() noexcept = 0;

    void want() noexcept EXCLUDES(mutex_);
    void run() noexcept EXCLUDES(mutex_);

    const std::chrono::milliseconds pause_;

    // Sequentially consistent, as are the counts of what a turn looks for: who adds something, and then finds that a
    // turn is wanted already, has added it for that turn.
    std::atomic<bool> wanted_{false};

    Mutex mutex_{Rank::service};
    Condition changed_;
    bool started_ GUARDED_BY(mutex_) = false;
};

}  // namespace ftcuda::core
