#include "lost_captures.hpp"

#include "violations.hpp"

#include <algorithm>

namespace ftcuda::sim::lost_captures {

namespace {

bool has_lost_a_body(const Graph& graph) {
    bool found = false;
    for_each_child(graph,
                   [&](const Graph& inner) { found = found || inner.handle == nullptr || has_lost_a_body(inner); });
    return found;
}

// Whether nothing can come behind what it captured any more, once it is gone.
bool leaves_work_behind(const Stream& stream) {
    const Capture& capture = *stream.capture;
    return std::none_of(capture.joined.begin(), capture.joined.end(), [&](const std::shared_ptr<Stream>& other) {
        return other.get() != &stream && come_before(stream.captured, other->captured);
    });
}

}  // namespace

void stream_destroyed(const Stream& stream) {
    if (!stream.capture || (stream.capture->origin.get() != &stream && !leaves_work_behind(stream))) return;
    violation("stream destroyed while it captures");
    stream.capture->invalidated = true;  // of one that only joined it: nothing can end it well any more
}

void event_recorded_by_others() { violation("event recorded that is part of a capture"); }

void graph_used(const Graph& graph) {
    if (has_lost_a_body(graph)) violation("graph used of which a failed capture destroyed a body");
}

}  // namespace ftcuda::sim::lost_captures
