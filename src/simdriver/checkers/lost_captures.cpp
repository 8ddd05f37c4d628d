#include "lost_captures.hpp"

#include "violations.hpp"

namespace ftcuda::sim::lost_captures {

namespace {

bool has_lost_a_body(const Graph& graph) {
    bool found = false;
    for_each_child(graph,
                   [&](const Graph& inner) { found = found || inner.handle == nullptr || has_lost_a_body(inner); });
    return found;
}

}  // namespace

void stream_destroyed(const Stream& stream) {
    if (!stream.capture) return;
    violation("stream destroyed while it captures");
    stream.capture->invalidated = true;  // of one that only joined it: nothing can end it well any more
}

void memory_freed_in(const Stream& stream) {
    if (stream.capture) violation("memory freed into a capture");
}

void graph_used(const Graph& graph) {
    if (has_lost_a_body(graph)) violation("graph used of which a failed capture destroyed a body");
}

}  // namespace ftcuda::sim::lost_captures
