// Failures of destructors: they have no caller to raise to, so a failure is added here and comes out once, as a
// warning, from a later call.
#pragma once

#include "../sync/reason.hpp"

#include <cstddef>

namespace ftcuda::core::deferred_errors {

struct DeferredError {
    Status status;
    const char* verb;    // "destroy", "free", "unload"
    const char* object;  // "stream", "buffer", ...
};

// Remembers a failed clean-up; does nothing for a success. Beyond 64 unread failures only their number is kept.
void add(Status status, const char* verb, const char* object) noexcept;

// True if there may be something to pop. Cheap enough for every call that is not a launch.
bool any() noexcept;

// Pops the oldest failure. False when there is none.
bool pop(DeferredError& error) noexcept;

// Failures dropped since the last call.
std::size_t pop_dropped() noexcept;

}  // namespace ftcuda::core::deferred_errors
