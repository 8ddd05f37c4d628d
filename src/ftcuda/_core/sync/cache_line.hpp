// Cache lines.
#pragma once

namespace ftcuda::core {

// Between fields that different threads write: keeps them on different cache lines wherever the object lies, so that it
// needs no alignment of its own, for which memory takes longer to get.
struct LineBetween {
    char unused[64];
};

}  // namespace ftcuda::core
