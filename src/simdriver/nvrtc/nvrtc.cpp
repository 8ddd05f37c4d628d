// An NVRTC in front of the real one. It stands in a process before the program looks for NVRTC, by the name that the
// program looks for, and passes every call on to the library that FTCUDA_NVRTC names. Only the cubins are different:
// they carry the PTX too, for the simulated driver to run. The real NVRTC makes both whenever it is asked for a cubin,
// so options, errors and logs, those of the assembler too, are its own.
#include "../code/cubin.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace ftcuda::sim {

namespace {

using Program = struct ProgramHandle*;

constexpr int success = 0;
constexpr int out_of_memory = 1;
constexpr int internal_error = 11;

// Why this thread's last call that ended with internal_error was not passed on.
thread_local char problem[512] = "";

// The library is never closed, and nothing of it is kept for the exit of the process, during which threads may call.
struct Library {
    void* handle = nullptr;
    char failure[sizeof problem] = "";
};

// NVRTC looks for its builtins by their name. Those of 13.0 lie beside it and are not found.
void load_builtins(void* handle, const char* path) {
    const auto version = reinterpret_cast<int (*)(int*, int*)>(dlsym(handle, "nvrtcVersion"));
    const char* const slash = std::strrchr(path, '/');
    int major = 0;
    int minor = 0;
    if (version == nullptr || slash == nullptr || version(&major, &minor) != success) return;
    char builtins[4096];
    const int length = std::snprintf(builtins, sizeof builtins, "%.*s/libnvrtc-builtins.so.%d.%d",
                                     static_cast<int>(slash - path), path, major, minor);
    if (length < static_cast<int>(sizeof builtins)) dlopen(builtins, RTLD_LAZY | RTLD_LOCAL);
}

const Library& real() {
    static const Library library = [] {
        Library opened;
        const char* const path = std::getenv("FTCUDA_NVRTC");
        if (path == nullptr || *path == '\0') {
            std::snprintf(opened.failure, sizeof opened.failure,
                          "the simulated driver's NVRTC does not know the real one: FTCUDA_NVRTC is not set");
            return opened;
        }
        opened.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (opened.handle != nullptr && dlsym(opened.handle, "ftcuda_sim_nvrtc") != nullptr) {
            opened.handle = nullptr;
            std::snprintf(opened.failure, sizeof opened.failure,
                          "the simulated driver's NVRTC does not know the real one: FTCUDA_NVRTC=%s is itself", path);
        } else if (opened.handle == nullptr) {
            const char* const reason = dlerror();
            std::snprintf(opened.failure, sizeof opened.failure,
                          "the simulated driver's NVRTC cannot load the real one, FTCUDA_NVRTC=%s: %s", path,
                          reason != nullptr ? reason : "no reason given");
        } else {
            load_builtins(opened.handle, path);
        }
        return opened;
    }();
    return library;
}

// A function of the real library. Null, and a problem, where there is none.
template <class Function>
Function function(const char* name) {
    const Library& library = real();
    if (library.handle == nullptr) {
        std::memcpy(problem, library.failure, sizeof problem);
        return nullptr;
    }
    void* const symbol = dlsym(library.handle, name);
    if (symbol == nullptr) std::snprintf(problem, sizeof problem, "the real NVRTC is of a version without %s", name);
    else problem[0] = '\0';
    return reinterpret_cast<Function>(symbol);
}

using GetSize = int (*)(Program, std::size_t*);
using GetBytes = int (*)(Program, char*);

int read(Program program, const char* size_name, const char* bytes_name, std::string& bytes) {
    const auto get_size = function<GetSize>(size_name);
    const auto get_bytes = function<GetBytes>(bytes_name);
    if (get_size == nullptr || get_bytes == nullptr) return internal_error;
    std::size_t size = 0;
    if (const int result = get_size(program, &size); result != success) return result;
    bytes.resize(size);
    return size == 0 ? success : get_bytes(program, bytes.data());
}

// What a program gets as its cubin: nothing where there is none, and where no PTX was made the real one.
int read_cubin_with_ptx(Program program, std::string& image) try {
    std::string cubin;
    std::string ptx;
    if (const int result = read(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN", cubin); result != success) return result;
    if (cubin.empty()) return success;
    if (const int result = read(program, "nvrtcGetPTXSize", "nvrtcGetPTX", ptx); result != success) return result;
    if (!ptx.empty() && ptx.front() != '\0') image = add_ptx(cubin, ptx);
    if (image.empty()) image = std::move(cubin);
    return success;
} catch (const std::bad_alloc&) {
    return out_of_memory;
}

}  // namespace

// By this name, which nothing else has, the library knows itself.
EXPORT const char ftcuda_sim_nvrtc[] = "the simulated driver's NVRTC";

#define FTCUDA_SIM_NVRTC(name, parameters, arguments)                       \
    EXPORT int name parameters {                                            \
        const auto passed_on = function<int(*) parameters>(#name);          \
        return passed_on != nullptr ? passed_on arguments : internal_error; \
    }
#include "functions.def"
#undef FTCUDA_SIM_NVRTC

EXPORT const char* nvrtcGetErrorString(int result) {
    if (result == internal_error && problem[0] != '\0') return problem;
    static const auto passed_on = function<const char* (*)(int)>("nvrtcGetErrorString");
    return passed_on != nullptr ? passed_on(result) : "NVRTC_ERROR unknown";
}

EXPORT int nvrtcGetCUBINSize(Program program, std::size_t* bytes) {
    std::string image;
    // The real one says what is wrong with the arguments.
    if (program == nullptr || bytes == nullptr) {
        const auto passed_on = function<GetSize>("nvrtcGetCUBINSize");
        return passed_on != nullptr ? passed_on(program, bytes) : internal_error;
    }
    const int result = read_cubin_with_ptx(program, image);
    if (result == success) *bytes = image.size();
    return result;
}

EXPORT int nvrtcGetCUBIN(Program program, char* bytes) {
    std::string image;
    if (program == nullptr || bytes == nullptr) {
        const auto passed_on = function<GetBytes>("nvrtcGetCUBIN");
        return passed_on != nullptr ? passed_on(program, bytes) : internal_error;
    }
    const int result = read_cubin_with_ptx(program, image);
    if (result == success) std::memcpy(bytes, image.data(), image.size());
    return result;
}

}  // namespace ftcuda::sim
