#include "lost_captures.hpp"

#include "violations.hpp"

namespace ftcuda::sim::lost_captures {

void stream_destroyed(const Stream& stream) {
    if (!stream.capture) return;
    violation("stream destroyed while it captures");
    stream.capture->invalidated = true;  // of one that only joined it: nothing can end it well any more
}

void memory_freed_in(const Stream& stream) {
    if (stream.capture) violation("memory freed into a capture");
}

}  // namespace ftcuda::sim::lost_captures
