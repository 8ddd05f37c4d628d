// Functions of the caller's, each known by an address, that the driver calls in the order of a stream: what comes
// behind waits until they return.
//
// The driver's thread calls none of them: it would have to attach to the caller's interpreter. It waits for one thread
// of the caller's, which takes them and calls them one after the other. That thread makes no call of the driver
// meanwhile (sync/may_wait.hpp). At exit nobody is waited for any more.
//
// To a test's scheduler both threads are one: the driver's gives its part to the thread that calls, for the call.
#pragma once

#include "deferred_release.hpp"

namespace ftcuda::core {

class HostCall final : public Shared {
public:
    // For as long as `retention` is; returns what run() is told.
    static void* make(deferred_release::Retention& retention, Ref<deferred_release::ForeignReference> function);

    // For the driver: `call` is one of these. Returns when the function has.
    static void run(void* call) noexcept;

private:
    explicit HostCall(Ref<deferred_release::ForeignReference> function) noexcept : function_(std::move(function)) {}
    ~HostCall() override = default;

    const Ref<deferred_release::ForeignReference> function_;
};

namespace host_calls {

// True for who must start the thread: nobody has, or who had could not.
bool claim_thread() noexcept;
void give_claim_back() noexcept;

// For the thread alone: the next function to call, for which it waits. The one that it took before has returned; who
// waits for that goes on when this thread waits, so that a schedule never meets it elsewhere.
void* take();

// From now on nothing is called, and nobody waits.
void end() noexcept;

}  // namespace host_calls
}  // namespace ftcuda::core
