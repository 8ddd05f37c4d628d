// Waiting for all of a context without being stuck in it: the driver has no question for "is all of the context done?",
// so a thread of its own is in the driver's wait, and whoever waits with a limit asks how far that thread is.
#pragma once

#include "../sync/mutex.hpp"
#include "../sync/reason.hpp"

#include <atomic>
#include <cstdint>

namespace ftcuda::core {

class Context;

// Never freed, and neither is its thread, which sleeps while nobody asks.
class ContextWait {
public:
    explicit ContextWait(Context& context) noexcept : context_(context) {}

    // Starts the thread, if it is not there; throws if there can be none.
    void start() EXCLUDES(mutex_);

    // Asks for a wait for all that was submitted so far; its number. After start().
    std::uint64_t ask() noexcept EXCLUDES(mutex_);

    // What the wait came to; CUDA_ERROR_NOT_READY until it is over. Waits that were asked for later count:
    // they are for more.
    Status answer(std::uint64_t number) noexcept EXCLUDES(mutex_);

private:
    void run() noexcept EXCLUDES(mutex_);

    // Constant after construction.
    Context& context_;

    // The wait that is over. Stored under the lock, with release, after `outcome_`; a thread that
    // spins reads it without.
    std::atomic<std::uint64_t> over_{0};

    Mutex mutex_{Rank::context_wait};
    Condition asked_for_;
    std::uint64_t asked_ GUARDED_BY(mutex_) = 0;
    bool started_ GUARDED_BY(mutex_) = false;
    Status outcome_ GUARDED_BY(mutex_);
};

}  // namespace ftcuda::core
