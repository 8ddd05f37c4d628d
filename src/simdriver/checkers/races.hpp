// An oracle for missing order between streams: vector clocks over the exact ranges that work touches.
//
// Each stream's queue is one component of the clock. Work knows, from what was submitted, what it comes after: the work
// before it in its stream, the events it waits for, and everything the host has seen done when it was submitted, by
// whichever thread. Two pieces of work that touch the same bytes, one of them writing, without such an order are
// reported, even if this run happened to do them one after the other.
//
// A word that a stream writes behind a barrier, where the host can read it, tells the host what comes before. When it
// is written: the host's own reads and writes of pinned memory are not seen. And a host thread that learned of a
// synchronisation is not told from one that did not.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim::races {

void watch(bool on) noexcept;
bool is_watching() noexcept;

// Under the lock. The clock of a new piece of work in `queue`, and from then on the queue's.
std::shared_ptr<const Clock> clock_of(Queue& queue, const std::vector<Point>& after);
// The host knows that `point` is reached.
void host_saw(const Point& point);

// For the running work of the calling thread; without the lock.
void begin();
void touch(std::uint64_t address, std::size_t size, ptx::Access access);
// Under the lock: compares what was touched with what others did.
void end(const Queue& queue, const Work& work);

}  // namespace ftcuda::sim::races
