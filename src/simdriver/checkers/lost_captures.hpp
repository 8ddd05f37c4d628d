// An oracle for what a capture cannot take: the end of its stream, and frees. Under the lock.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim::lost_captures {

void stream_destroyed(const Stream& stream);
void memory_freed_in(const Stream& stream);

}  // namespace ftcuda::sim::lost_captures
