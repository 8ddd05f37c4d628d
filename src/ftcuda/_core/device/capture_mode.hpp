// The capture mode of a thread.
#pragma once

namespace ftcuda::core {

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

}  // namespace ftcuda::core
