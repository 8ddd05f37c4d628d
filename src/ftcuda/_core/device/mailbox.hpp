// The mailbox of failed destructors: they have no caller to raise to, so a failure is posted here and comes out once,
// as a warning, from a later call.
#pragma once

#include "../sync/reason.hpp"

#include <cstddef>

namespace ftcuda::core::mailbox {

struct Notice {
    Status status;
    const char* verb;    // "destroy", "free", "unload"
    const char* object;  // "stream", "buffer", ...
};

// Remembers a failed clean-up; does nothing for a success. Beyond 64 unread notices only their number is kept.
void post(Status status, const char* verb, const char* object) noexcept;

// True if there may be something to pop. Cheap enough for every call that is not a launch.
bool has_mail() noexcept;

// Pops the oldest notice. False when there is none.
bool pop(Notice& notice) noexcept;

// Notices dropped since the last call.
std::size_t pop_dropped() noexcept;

}  // namespace ftcuda::core::mailbox
