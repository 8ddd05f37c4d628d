#include "nvrtc.hpp"

#include "calls_under_way.hpp"
#include "compiler_library.hpp"

#include <atomic>
#include <mutex>

#ifndef _WIN32
#include <locale.h>
#endif

namespace ftcuda::driver {

namespace {

using NvrtcProgram = struct NvrtcProgramHandle*;

constexpr int nvrtc_success = 0;
constexpr int nvrtc_error_pch_create_heap_exhausted = 14;

struct NvrtcTable {
#define FTCUDA_NVRTC_ENTRY(name, parameters) int(*name) parameters = nullptr;
#define FTCUDA_NVRTC_OPTIONAL FTCUDA_NVRTC_ENTRY
#include "nvrtc_entry_points.def"
#undef FTCUDA_NVRTC_OPTIONAL
#undef FTCUDA_NVRTC_ENTRY
    const char* (*nvrtcGetErrorString)(int result) = nullptr;
};

// Release: table, path and version are complete. Pairs with the acquire in nvrtc_loaded().
std::atomic<bool> compiler_ready{false};
std::mutex loading_compiler;
std::mutex
    growing;  // of the heap for precompiled headers: two threads that ask and set in turns would make it smaller again
NvrtcTable nvrtc;
CallsUnderWay compilations;
std::string& loaded_path = *new std::string;  // never destroyed: daemon threads may read it while the process exits
std::pair<int, int> version;

const char* fill(NvrtcTable& table, const Library& library) {
    const char* missing = nullptr;
#define FTCUDA_NVRTC_ENTRY(name, parameters)                                    \
    table.name = reinterpret_cast<decltype(table.name)>(library.symbol(#name)); \
    if (table.name == nullptr && missing == nullptr) missing = #name;
#define FTCUDA_NVRTC_OPTIONAL(name, parameters) \
    table.name = reinterpret_cast<decltype(table.name)>(library.symbol(#name));
#include "nvrtc_entry_points.def"
#undef FTCUDA_NVRTC_OPTIONAL
#undef FTCUDA_NVRTC_ENTRY
    table.nvrtcGetErrorString =
        reinterpret_cast<decltype(table.nvrtcGetErrorString)>(library.symbol("nvrtcGetErrorString"));
    return table.nvrtcGetErrorString == nullptr && missing == nullptr ? "nvrtcGetErrorString" : missing;
}

// Gives the calling thread its locale back: NVRTC 11.8 leaves it "C", in which Python takes all text for ASCII.
class KeptLocale {
#ifndef _WIN32
public:
    KeptLocale() noexcept : before_(uselocale(locale_t{})) {}
    ~KeptLocale() { uselocale(before_); }

private:
    const locale_t before_;
#endif
};

// Destroys the program at the end of a compilation, however it ends.
class Program {
public:
    ~Program() {
        if (handle_ != nullptr) nvrtc.nvrtcDestroyProgram(&handle_);
    }
    // For a new program, after the one before it.
    NvrtcProgram* out() noexcept {
        if (handle_ != nullptr) nvrtc.nvrtcDestroyProgram(&handle_);
        return &handle_;
    }
    NvrtcProgram get() const noexcept { return handle_; }

private:
    NvrtcProgram handle_ = nullptr;
};

bool check(int result, const char* step, Compilation& compilation) {
    if (result == nvrtc_success) return true;
    compilation.problem = std::string(step) + ": " + nvrtc.nvrtcGetErrorString(result);
    return false;
}

using GetSize = int (*)(NvrtcProgram, std::size_t*);
using GetBytes = int (*)(NvrtcProgram, char*);

}  // namespace

bool load_nvrtc(const std::vector<std::string>& paths, std::string& problem) {
    const std::lock_guard<std::mutex> lock(loading_compiler);
    if (compiler_ready.load(std::memory_order_relaxed)) return true;
    NvrtcTable table;
    const std::string* const path =
        open_first(paths, problem, [&](const Library& library) { return fill(table, library); });
    if (path == nullptr) return false;
    nvrtc = table;
    loaded_path = *path;
    nvrtc.nvrtcVersion(&version.first, &version.second);
    compiler_ready.store(true, std::memory_order_release);
    return true;
}

bool nvrtc_loaded() noexcept { return compiler_ready.load(std::memory_order_acquire); }
const std::string& nvrtc_path() noexcept { return loaded_path; }
std::pair<int, int> nvrtc_version() noexcept { return version; }

namespace {

// Makes room for the precompiled header that `program` had no room for. False if NVRTC cannot.
bool grow_header_heap(NvrtcProgram program) {
    std::size_t required = 0;
    std::size_t current = 0;
    if (nvrtc.nvrtcGetPCHHeapSizeRequired == nullptr || nvrtc.nvrtcGetPCHHeapSize == nullptr ||
        nvrtc.nvrtcSetPCHHeapSize == nullptr)
        return false;
    if (nvrtc.nvrtcGetPCHHeapSizeRequired(program, &required) != nvrtc_success) return false;
    const std::lock_guard<std::mutex> lock(growing);
    if (nvrtc.nvrtcGetPCHHeapSize(&current) != nvrtc_success) return false;
    return required <= current || nvrtc.nvrtcSetPCHHeapSize(required) == nvrtc_success;
}

// Compiles into `program`, which is made anew. The log is there after a failure too.
bool compile_into(Program& program, Compilation& compilation) {
    if (!check(nvrtc.nvrtcCreateProgram(program.out(), compilation.source.c_str(), compilation.name.c_str(), 0, nullptr,
                                        nullptr),
               "nvrtcCreateProgram", compilation)) {
        return false;
    }
    for (const std::string& expression : compilation.name_expressions) {
        if (!check(nvrtc.nvrtcAddNameExpression(program.get(), expression.c_str()), "nvrtcAddNameExpression",
                   compilation))
            return false;
    }
    std::vector<const char*> options;
    for (const std::string& option : compilation.options) options.push_back(option.c_str());
    const int compiled = nvrtc.nvrtcCompileProgram(program.get(), static_cast<int>(options.size()), options.data());
    if (!check(read_bytes(program.get(), nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, compilation.log),
               "nvrtcGetProgramLog", compilation)) {
        return false;
    }
    drop_terminator(compilation.log);
    if (compilation.makes_header && nvrtc.nvrtcGetPCHCreateStatus != nullptr) {
        compilation.header_status = nvrtc.nvrtcGetPCHCreateStatus(program.get());
    }
    return check(compiled, "nvrtcCompileProgram", compilation);
}

// Reads what was asked for. NVRTC answers with nothing at all where the options make something else, which is no image.
bool read_image(NvrtcProgram program, GetSize get_size, GetBytes get_bytes, const char* step,
                Compilation& compilation) {
    if (get_size == nullptr || get_bytes == nullptr) {
        compilation.problem = std::string(step) + ": this NVRTC has no such function";
        return false;
    }
    if (!check(read_bytes(program, get_size, get_bytes, compilation.image), step, compilation)) return false;
    if (compilation.output == Output::ptx) drop_terminator(compilation.image);
    if (!compilation.image.empty()) return true;
    compilation.problem = std::string(step) + ": nothing was made; the options make code of another kind";
    return false;
}

}  // namespace

bool compile(Compilation& compilation) {
    const CallUnderWay call(compilations);
    compilation.is_forked = !call;
    if (compilation.is_forked) return false;
    [[maybe_unused]] const KeptLocale locale{};
    Program program;
    bool compiled = compile_into(program, compilation);
    if (compiled && compilation.header_status == nvrtc_error_pch_create_heap_exhausted &&
        grow_header_heap(program.get())) {
        compiled = compile_into(program, compilation);
    }
    if (!compiled) return false;
    for (const std::string& expression : compilation.name_expressions) {
        const char* lowered = nullptr;
        if (!check(nvrtc.nvrtcGetLoweredName(program.get(), expression.c_str(), &lowered), "nvrtcGetLoweredName",
                   compilation))
            return false;
        compilation.lowered_names.emplace_back(lowered);
    }
    switch (compilation.output) {
    case Output::ptx:
        return read_image(program.get(), nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, "nvrtcGetPTX", compilation);
    case Output::ltoir:
        return read_image(program.get(), nvrtc.nvrtcGetLTOIRSize, nvrtc.nvrtcGetLTOIR, "nvrtcGetLTOIR", compilation);
    case Output::cubin: break;
    }
    // Absent for some targets, which is no failure of the compilation.
    if (read_bytes(program.get(), nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, compilation.ptx) != nvrtc_success)
        compilation.ptx.clear();
    drop_terminator(compilation.ptx);
    return read_image(program.get(), nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, "nvrtcGetCUBIN", compilation);
}

}  // namespace ftcuda::driver
