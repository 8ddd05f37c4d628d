// The simulated driver for the C++ tests, by the path that a test is given.
#pragma once

#include "../../src/ftcuda/_driver/library.hpp"
#include "../../src/ftcuda/_driver/loader.hpp"
#include "../../src/simdriver/control.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace ftcuda::test {

// Windows takes no relative paths.
inline std::string absolute(const char* path) { return std::filesystem::absolute(path).make_preferred().string(); }

// Loads it; without it there is nothing to test.
inline void load_simulated(const char* path) {
    std::string problem;
    if (driver::load(driver::candidates("sim", absolute(path)), problem)) return;
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::_Exit(2);
}

// Of the one that is loaded already.
inline const FtcudaSimControl& control_of(const char* path) {
    std::string error;
    const driver::Library library = driver::Library::open(absolute(path), error);
    if (!library) std::_Exit(2);
    return *reinterpret_cast<const FtcudaSimControl* (*)()>(library.symbol("ftcuda_sim_control"))();
}

}  // namespace ftcuda::test
