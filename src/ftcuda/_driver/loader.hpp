// Finds the driver, fills the table, initialises CUDA. Once per process.
#pragma once

#include "status.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace ftcuda::driver {

// What was loaded. Constant after load() succeeded.
struct Loaded {
    std::string path;
    int version = 0;  // cuDriverGetVersion: 1000 * major + 10 * minor
    bool simulated = false;
};

// Where to look: file names or paths, tried in order.
std::vector<std::string> candidates(std::string_view choice, const std::string& simulated_driver);

// Loads the first driver of `paths` that opens, and calls cuInit. Safe from any number of threads: one does the work,
// the rest wait for it. A failure is not remembered, so that a later call may try again; `problem` then says for each
// path what went wrong. Never falls back from a driver that opened to another one.
bool load(const std::vector<std::string>& paths, std::string& problem);

// Any function of the loaded driver, by its name and the version of its declaration. The codes of the driver: 801 and
// null where it has none, 3 before load(), 1 for a null argument.
abi::CUresult find_entry(const char* name, int version, void** function) noexcept;

bool loaded() noexcept;
const Loaded& loaded_driver() noexcept;

}  // namespace ftcuda::driver
