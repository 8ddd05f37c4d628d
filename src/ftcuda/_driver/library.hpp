// An opened shared library: a plain handle, cheap to copy, never unloaded. A driver or compiler that has run once may
// have threads of its own, so unloading it is never safe.
#pragma once

#include <string>

namespace ftcuda::driver {

class Library {
public:
    Library() = default;

    // `path` is UTF-8. A bare name is looked up where the system's loader looks; on Windows in System32 only.
    static Library open(const std::string& path, std::string& error);

    explicit operator bool() const noexcept { return handle_ != nullptr; }

    void* symbol(const char* name) const noexcept;  // null when absent

private:
    void* handle_ = nullptr;
};

}  // namespace ftcuda::driver
