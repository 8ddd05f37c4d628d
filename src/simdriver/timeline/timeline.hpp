// Queues of work and the threads that run them: submitting and waiting. Under the lock.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// Queues `work` in `stream`, ordered after the legacy stream or before it as CUDA says. Returns the point behind it.
// Nothing in a capturing stream: what can be captured is recorded instead (recording.hpp).
Point submit(Stream& stream, Work work);

// Queues it, ordered after nothing but what it says.
Point enqueue(const std::shared_ptr<Queue>& queue, Work work);

// Waits until `point` is reached or the context fails. Releases the lock while it waits.
CUresult wait_for(Guard& lock, const Context& context, const Point& point);
// What a query of it answers.
CUresult ask(const Point& point);

// The stream exists no more: what was submitted runs on, then its worker ends.
void retire_queue(const Stream& stream);

}  // namespace ftcuda::sim
