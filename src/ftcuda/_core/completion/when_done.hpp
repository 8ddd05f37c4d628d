// Functions of the caller's, each known by an address, that are called when work is done, or has failed: by one thread
// of the caller's, one after the other. Nobody waits for them, so that they may do what they like.
#pragma once

#include "completion.hpp"
#include "deferred_release.hpp"

#include <list>

namespace ftcuda::core {

struct WhenDone {
    using List = std::list<WhenDone>;  // one or several: their places are made before anything can fail

    Ref<deferred_release::ForeignReference> function;
    Status status;
};

class WhenDoneWaiter final : public Waiter {
public:
    explicit WhenDoneWaiter(Ref<deferred_release::ForeignReference> function) : call_(1, {std::move(function), {}}) {}
    void over(Status status) noexcept override;

private:
    WhenDone::List call_;
};

namespace when_done {

// True for who must start the thread: nobody has, or who had could not.
bool claim_thread() noexcept;
void give_claim_back() noexcept;

struct Call {
    void* function;
    Status status;  // what became of the work
};

// For the thread alone: the next function to call, for which it waits. The one before has returned.
Call take();

// From now on nothing is called.
void end() noexcept;

}  // namespace when_done
}  // namespace ftcuda::core
