#include "library.hpp"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace ftcuda::driver {

#ifdef _WIN32

Library Library::open(const std::string& path, std::string& error) {
    const int length = MultiByteToWideChar(CP_UTF8, 0, path.c_str(), -1, nullptr, 0);
    std::wstring wide(static_cast<std::size_t>(length), L'\0');
    MultiByteToWideChar(CP_UTF8, 0, path.c_str(), -1, wide.data(), length);
    const bool bare = path.find_first_of("\\/") == std::string::npos;
    const DWORD where =
        bare ? LOAD_LIBRARY_SEARCH_SYSTEM32 : LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    Library library;
    library.handle_ = LoadLibraryExW(wide.c_str(), nullptr, where);
    if (!library) error = "Windows error " + std::to_string(GetLastError());
    return library;
}

void* Library::symbol(const char* name) const noexcept {
    return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle_), name));
}

#else

Library Library::open(const std::string& path, std::string& error) {
    Library library;
    library.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* reason = dlerror();
        error = reason != nullptr ? reason : "dlopen gave no reason";
    }
    return library;
}

void* Library::symbol(const char* name) const noexcept { return dlsym(handle_, name); }

#endif

}  // namespace ftcuda::driver
