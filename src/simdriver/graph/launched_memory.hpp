// The memory that a launch allocates and frees. Under the lock.
#pragma once

#include "layout.hpp"

namespace ftcuda::sim {

// Puts memory behind the addresses of all that the executable allocates.
CUresult map_memory(const Executable& executable);

class LaunchedMemory {
public:
    // What is allocated is so for all nodes from here on: which may use it, checkers/memory_order.hpp looks at. Or the
    // driver's error, and nothing has happened.
    CUresult begin(const Executable& executable, const Layout& layout);
    // What is freed is so for what is submitted from here on.
    void end();

private:
    std::vector<Use> freed_;
};

Work prepare(const AllocOperation& operation);
Work prepare(const FreeOperation& operation);

}  // namespace ftcuda::sim
