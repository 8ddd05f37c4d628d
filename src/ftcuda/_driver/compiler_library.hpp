// What NVRTC and nvJitLink have in common: libraries that are loaded from the first of several paths that has them, and
// give texts and images by their size. Both call success 0.
#pragma once

#include "library.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace ftcuda::driver {

// Opens each of `paths` until `fill(library)` says that no function is missing, by null instead of its name. Null, and
// why not, if there is none.
template <class Fill>
const std::string* open_first(const std::vector<std::string>& paths, std::string& problem, const Fill& fill) {
    problem.clear();
    for (const std::string& path : paths) {
        std::string error;
        const Library library = Library::open(path, error);
        const char* const missing = library ? fill(library) : nullptr;
        if (library && missing == nullptr) return &path;
        problem += (problem.empty() ? "" : "; ") + path + ": " +
                   (missing == nullptr ? error : "no function " + std::string(missing));
    }
    return nullptr;
}

template <class Handle>
int read_bytes(Handle handle, int (*get_size)(Handle, std::size_t*), int (*get_bytes)(Handle, char*),
               std::string& bytes) {
    std::size_t size = 0;
    if (const int result = get_size(handle, &size); result != 0) return result;
    bytes.resize(size);
    return size == 0 ? 0 : get_bytes(handle, bytes.data());
}

inline void drop_terminator(std::string& text) {
    while (!text.empty() && text.back() == '\0') text.pop_back();
}

}  // namespace ftcuda::driver
