// Images of code: from bytes or a file to a program. Without the lock.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// What a program says when it loads an image, and where it wants to read what was wrong.
struct JitOptions {
    unsigned count = 0;
    const int* names = nullptr;
    void* const* values = nullptr;
};

// The PTX in an image, or the driver's error.
CUresult load_program(const void* image, const JitOptions& options, std::shared_ptr<const ptx::Program>& program);
// A file's bytes and a zero behind them.
CUresult read_image(const char* path, std::string& image);

}  // namespace ftcuda::sim
