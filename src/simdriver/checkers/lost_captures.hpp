// An oracle for what a capture cannot take: the end of its stream, frees of memory that is no graph's, and records of
// its events by others; and for what a failed one takes with it. Under the lock.
#pragma once

#include "../state/graph.hpp"

namespace ftcuda::sim::lost_captures {

void stream_destroyed(const Stream& stream);
// While the capture that had recorded the event last goes on: drivers crash then, or when it ends.
void event_recorded_by_others();
// It is instantiated, or the end of a capture: drivers crash where a capture that failed was into one of its bodies.
void graph_used(const Graph& graph);

}  // namespace ftcuda::sim::lost_captures
