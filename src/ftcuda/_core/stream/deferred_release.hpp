// Objects of the caller's that must live until the work submitted with them is done: producers of arrays, and memory of
// the caller's own allocators. The core knows them as addresses; whoever takes one back lets it go.
#pragma once

#include "stream.hpp"

namespace ftcuda::core::deferred_release {

// Keeps `object` until what was submitted to `stream` so far is done; while the stream is captured, or when the driver
// will not say, until the next synchronize() of the context.
void defer(Stream& stream, void* object);

// Keeps `object` until `event` is reached; takes the event over. A null event is reached.
void defer(Context& context, abi::CUevent event, void* object);

// The ways to come after an event, which the context gets back: true if it is reached; waited for, by the caller;
// waited for by `stream`. The event stays the caller's if it is not reached, or if the stream cannot wait for it.
bool is_over(Context& context, abi::CUevent event) noexcept;
Status wait_for(Context& context, abi::CUevent event) noexcept;
Status order_after(Stream& stream, Context& context, abi::CUevent event) noexcept;

// True if something is kept. Cheap enough for every call that is not a launch.
bool is_pending() noexcept;

// An object whose work is done, the caller's from now on; null when there is none.
void* pop_done();

// An object of the caller's with a count of the core's: who lets go last passes it to pop_done().
class ForeignReference final : public Shared {
public:
    explicit ForeignReference(void* object) noexcept : object_(object) {}
    void* object() const noexcept { return object_; }

private:
    ~ForeignReference() override;

    void* const object_;
};

}  // namespace ftcuda::core::deferred_release
