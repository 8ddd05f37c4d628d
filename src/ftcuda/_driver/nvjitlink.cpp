#include "nvjitlink.hpp"

#include "calls_under_way.hpp"
#include "compiler_library.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace ftcuda::driver {

namespace {

using Linker = struct NvJitLinkHandle*;

struct NvJitLinkTable {
#define FTCUDA_NVJITLINK_ENTRY(name, parameters) int(*name) parameters = nullptr;
#include "nvjitlink_entry_points.def"
#undef FTCUDA_NVJITLINK_ENTRY
};

// Release: table and version are complete. Pairs with the acquire in nvjitlink_loaded().
std::atomic<bool> linker_ready{false};
std::mutex loading_linker;
NvJitLinkTable nvjitlink;
CallsUnderWay links;
std::pair<unsigned, unsigned> linker_version;

const char* fill(NvJitLinkTable& table, const Library& library) {
#define FTCUDA_NVJITLINK_ENTRY(name, parameters)                                \
    table.name = reinterpret_cast<decltype(table.name)>(library.symbol(#name)); \
    if (table.name == nullptr) return #name;
#include "nvjitlink_entry_points.def"
#undef FTCUDA_NVJITLINK_ENTRY
    return nullptr;
}

// nvJitLinkResult. Source: nvJitLink.h 13.5.
std::string result_name(int result) {
    static constexpr std::array names{
        "SUCCESS",
        "ERROR_UNRECOGNIZED_OPTION",
        "ERROR_MISSING_ARCH",
        "ERROR_INVALID_INPUT",
        "ERROR_PTX_COMPILE",
        "ERROR_NVVM_COMPILE",
        "ERROR_INTERNAL",
        "ERROR_THREADPOOL",
        "ERROR_UNRECOGNIZED_INPUT",
        "ERROR_FINALIZE",
        "ERROR_NULL_INPUT",
        "ERROR_INCOMPATIBLE_OPTIONS",
        "ERROR_INCORRECT_INPUT_TYPE",
        "ERROR_ARCH_MISMATCH",
        "ERROR_OUTDATED_LIBRARY",
        "ERROR_MISSING_FATBIN",
        "ERROR_UNRECOGNIZED_ARCH",
        "ERROR_UNSUPPORTED_ARCH",
        "ERROR_LTO_NOT_ENABLED",
    };
    const auto index = static_cast<std::size_t>(result);
    return index < names.size() ? "NVJITLINK_" + std::string(names[index]) : "result " + std::to_string(result);
}

// Destroys the linker at the end, however it ends.
class OwnedLinker {
public:
    OwnedLinker() = default;
    ~OwnedLinker() {
        if (linker_ != nullptr) nvjitlink.nvJitLinkDestroy(&linker_);
    }
    OwnedLinker(const OwnedLinker&) = delete;
    OwnedLinker& operator=(const OwnedLinker&) = delete;

    Linker* out() noexcept { return &linker_; }
    Linker get() const noexcept { return linker_; }

private:
    Linker linker_ = nullptr;
};

bool check(int result, const std::string& step, Linking& linking) {
    if (result == 0) return true;
    linking.problem = step + ": " + result_name(result);
    return false;
}

bool create(OwnedLinker& linker, Linking& linking) {
    std::vector<const char*> options;
    for (const std::string& option : linking.options) options.push_back(option.c_str());
    return check(nvjitlink.nvJitLinkCreate(linker.out(), static_cast<std::uint32_t>(options.size()), options.data()),
                 "nvJitLinkCreate", linking);
}

bool link_with(Linker linker, Linking& linking) {
    for (const Linking::Part& part : linking.parts) {
        const int added = nvjitlink.nvJitLinkAddData(linker, static_cast<int>(part.input), part.image->data(),
                                                     part.image->size(), part.name.c_str());
        if (!check(added, "nvJitLinkAddData of '" + part.name + "'", linking)) return false;
    }
    if (!check(nvjitlink.nvJitLinkComplete(linker), "nvJitLinkComplete", linking)) return false;
    if (!linking.makes_ptx)
        return check(
            read_bytes(linker, nvjitlink.nvJitLinkGetLinkedCubinSize, nvjitlink.nvJitLinkGetLinkedCubin, linking.image),
            "nvJitLinkGetLinkedCubin", linking);
    if (!check(read_bytes(linker, nvjitlink.nvJitLinkGetLinkedPtxSize, nvjitlink.nvJitLinkGetLinkedPtx, linking.image),
               "nvJitLinkGetLinkedPtx", linking))
        return false;
    drop_terminator(linking.image);
    return true;
}

// A log that cannot be read is empty: what went wrong before is the error.
void read_log(Linker linker, int (*get_size)(Linker, std::size_t*), int (*get_log)(Linker, char*), std::string& log) {
    if (read_bytes(linker, get_size, get_log, log) != 0) log.clear();
    drop_terminator(log);
}

}  // namespace

bool load_nvjitlink(const std::vector<std::string>& paths, std::string& problem) {
    const std::lock_guard<std::mutex> lock(loading_linker);
    if (linker_ready.load(std::memory_order_relaxed)) return true;
    NvJitLinkTable table;
    if (open_first(paths, problem, [&](const Library& library) { return fill(table, library); }) == nullptr)
        return false;
    nvjitlink = table;
    nvjitlink.nvJitLinkVersion(&linker_version.first, &linker_version.second);
    linker_ready.store(true, std::memory_order_release);
    return true;
}

bool nvjitlink_loaded() noexcept { return linker_ready.load(std::memory_order_acquire); }
std::pair<unsigned, unsigned> nvjitlink_version() noexcept { return linker_version; }

bool link(Linking& linking) {
    const CallUnderWay call(links);
    linking.is_forked = !call;
    if (linking.is_forked) return false;
    OwnedLinker linker;
    const bool linked = create(linker, linking) && link_with(linker.get(), linking);
    if (linker.get() != nullptr) {
        read_log(linker.get(), nvjitlink.nvJitLinkGetErrorLogSize, nvjitlink.nvJitLinkGetErrorLog, linking.error_log);
        read_log(linker.get(), nvjitlink.nvJitLinkGetInfoLogSize, nvjitlink.nvJitLinkGetInfoLog, linking.info_log);
    }
    return linked;
}

}  // namespace ftcuda::driver
