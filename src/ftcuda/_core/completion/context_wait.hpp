// Waiting for all of a context, and what is done after that.
//
// The driver has no question for "is all of the context done?". So a service of each context, with a thread of its own,
// is in the driver's wait, and whoever waits with a limit asks how far it is. Nor is what must be freed when nothing
// runs freed by a service: a wait for all of a context ends the captures of others, so that only the user may ask for
// one (decision 20).
#pragma once

#include "../device/context.hpp"
#include "service.hpp"

#include <functional>
#include <vector>

namespace ftcuda::core {

struct Limit;

// Runs `finish` at the end of the next synchronize(). For what may only go once nothing runs and nothing is being
// captured: modules, whose kernels may still run, and memory that a capturing stream used.
void retire(Context& context, std::function<void()> finish);

// Waits for all work of the context, then finishes what was retired before the wait. With a limit it finishes nothing
// if that came first.
Status synchronize(Context& context, const Limit& limit);
Status synchronize(Context& context);

// Of one context, for as long as that, which is for ever.
class ContextWait final : public Service {
public:
    explicit ContextWait(Context& context) : Service(std::make_shared<ServiceThread>(), Pause(0)), context_(context) {}
    static ContextWait& of(Context& context);

    void retire(std::function<void()> finish) EXCLUDES(retired_mutex_);
    // With the context current.
    Status synchronize(const Limit& limit) EXCLUDES(retired_mutex_, asked_mutex_);

private:
    // Asks for a wait for all that was submitted so far; its number. After start().
    std::uint64_t ask() noexcept EXCLUDES(asked_mutex_);
    // What the wait came to; CUDA_ERROR_NOT_READY until it is over. Waits that were asked for later count: they are for
    // more.
    Status answer(std::uint64_t number) noexcept EXCLUDES(asked_mutex_);
    Pause turn() noexcept override EXCLUDES(asked_mutex_);

    // Constant after construction.
    Context& context_;

    // The wait that is over. Stored under the lock, with release, after `outcome_`; a thread that spins reads it
    // without.
    std::atomic<std::uint64_t> over_{0};

    Mutex asked_mutex_{Rank::context_wait};
    std::uint64_t asked_ GUARDED_BY(asked_mutex_) = 0;
    Status outcome_ GUARDED_BY(asked_mutex_);

    Mutex retired_mutex_{Rank::retired};
    std::vector<std::function<void()>> retired_ GUARDED_BY(retired_mutex_);
};

}  // namespace ftcuda::core
