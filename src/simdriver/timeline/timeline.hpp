// Queues of work and the threads that run them: submitting and waiting. Under the lock.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// Queues `work` in `stream`, ordered after the legacy stream or before it as CUDA says. Work in a capturing stream is
// counted as a node instead. Returns the point behind it.
Point submit(Stream& stream, Work work);

// Waits until `point` is reached or the context fails. Releases the lock while it waits.
CUresult wait_for(Guard& lock, const Context& context, const Point& point);
// What a query of it answers.
CUresult ask(const Point& point);

// The stream exists no more: what was submitted runs on, then its worker ends.
void retire_queue(const Stream& stream);

}  // namespace ftcuda::sim
