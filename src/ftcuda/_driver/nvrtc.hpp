// NVRTC, NVIDIA's run-time compiler: loaded once from a path the caller names, then callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ftcuda::driver {

// Loads NVRTC from the first of `paths` that opens. Safe from any number of threads; a failure is not remembered.
bool load_nvrtc(const std::vector<std::string>& paths, std::string& problem);

bool nvrtc_loaded() noexcept;
const std::string& nvrtc_path() noexcept;
std::pair<int, int> nvrtc_version() noexcept;

enum class Output { ptx, cubin, ltoir };

struct Compilation {
    std::string source;
    std::string name;
    std::vector<std::string> options;
    std::vector<std::string> name_expressions;
    Output output = Output::ptx;
    bool makes_header = false;  // the options ask for a precompiled header

    // Results.
    bool is_forked = false;  // nothing was done: the process was forked while another thread compiled
    std::string problem;     // empty after success, else which step failed and NVRTC's name for it
    std::string log;         // warnings too
    std::string image;
    std::string ptx;  // of a cubin, where the compiler also made it: it tells the types of parameters
    std::vector<std::string> lowered_names;  // in the order of name_expressions
    int header_status =
        -1;  // what became of the precompiled header: an nvrtcResult; -1: not asked for, or NVRTC cannot tell
};

// True on success. Blocks for as long as NVRTC compiles; NVRTC serialises compilations by itself.
bool compile(Compilation& compilation);

}  // namespace ftcuda::driver
