// What a capture that is under way forbids, and its end. Under the lock.
//
// Source of the rules: driver-API reference, cuThreadExchangeStreamCaptureMode, and calls tried one by one on an H200
// (driver 580): see docs/design/simdriver.md.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// For the calls that the driver forbids while a capture is under way that the calling thread's mode minds. Invalidates
// it.
CUresult forbid_during_capture();
// For calls that wait for or ask about a stream: an error, and the end of the capture, if it captures.
CUresult forbid_on_capturing(const Stream& stream);
CUresult forbid_context_wait(const Context& context);

// No stream is part of it any more.
void end_capture(const std::shared_ptr<Capture>& capture);

}  // namespace ftcuda::sim
