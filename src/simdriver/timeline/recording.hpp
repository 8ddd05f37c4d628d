// What a capturing stream is given becomes a node of the graph. Under the lock.
#pragma once

#include "../state/graph.hpp"

namespace ftcuda::sim {

// Whether work may be submitted to the stream or captured in it: an error once the capture is invalid, and for the
// legacy stream while a stream that waits for it is captured, which ends that capture.
CUresult check_submission(const Stream& stream);

// A node behind what was captured in the stream so far.
void record(Stream& stream, Operation operation);

// Its captures are not over, so that what was recorded in it may be waited for by others of the same capture.
bool is_live(const std::shared_ptr<Capture>& capture);

// `stream` comes after `nodes` of the capture from here on, and is part of it.
void join(const std::shared_ptr<Capture>& capture, const std::shared_ptr<Stream>& stream, const Nodes& nodes);

}  // namespace ftcuda::sim
