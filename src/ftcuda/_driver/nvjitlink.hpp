// nvJitLink, NVIDIA's linker of device code: loaded once from a path the caller names, then callable from any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ftcuda::driver {

// Loads nvJitLink from the first of `paths` that opens. Safe from any number of threads; a failure is not remembered.
bool load_nvjitlink(const std::vector<std::string>& paths, std::string& problem);

bool nvjitlink_loaded() noexcept;
std::pair<unsigned, unsigned> nvjitlink_version() noexcept;

// nvJitLinkInputType.
enum class Input : int { cubin = 1, ptx = 2, ltoir = 3, fatbin = 4, object_file = 5, library = 6 };

struct Linking {
    struct Part {
        Input input;
        const std::string* image;  // alive until the end of link()
        std::string name;          // in messages
    };

    std::vector<std::string> options;
    std::vector<Part> parts;
    bool makes_ptx = false;

    // Results.
    bool is_forked = false;  // nothing was done: the process was forked while another thread linked
    std::string problem;     // empty after success, else which step failed and nvJitLink's name for it
    std::string error_log;
    std::string info_log;
    std::string image;
};

// True on success. Blocks for as long as nvJitLink works.
bool link(Linking& linking);

}  // namespace ftcuda::driver
