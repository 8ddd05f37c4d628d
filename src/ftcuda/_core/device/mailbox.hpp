// What a destructor could not do or say at once.
//
// The mailbox: a destructor has no caller to raise to, so its failure is posted here and comes out once, as a warning,
// from a later call. Reclaiming itself never invalidates another thread's stream capture (RelaxedCapture).
#pragma once

#include "../../_driver/status.hpp"

#include <cstddef>

namespace ftcuda::core::reclaim {

using driver::Status;

struct Notice {
    Status status;
    const char* verb;     // "destroy", "free", "unload"
    const char* object;   // "stream", "buffer", ...
};

// Remembers a failed clean-up; does nothing for a success. Beyond 64 unread notices only their number is kept.
void post(Status status, const char* verb, const char* object) noexcept;

// True if there may be something to take. Cheap enough for every call that is not a launch.
bool has_mail() noexcept;

// Takes the oldest notice. False when there is none.
bool take(Notice& notice) noexcept;

// Notices dropped since the last call.
std::size_t take_dropped() noexcept;

// For its scope, this thread's housekeeping calls neither fail because of a capture nor end it: with the mode GLOBAL or
// THREAD_LOCAL a free or an event query would do both. Source: driver-API reference, cuThreadExchangeStreamCaptureMode.
class RelaxedCapture {
public:
    RelaxedCapture() noexcept;
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

private:
    int mode_;
};

}  // namespace ftcuda::core::reclaim
