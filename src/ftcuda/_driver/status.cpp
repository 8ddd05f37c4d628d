#include "status.hpp"

#include "table.hpp"

#include <array>

namespace ftcuda::driver {

namespace {

enum class Need { required, optional };
enum class Pace { quick, blocks };

constexpr std::array<EntryDescription, static_cast<std::size_t>(Entry::count)> descriptions = {{
    {"", "", 0, false, false},
#define FTCUDA_ENTRY(symbol, name, version, need, pace, parameters) \
    {#symbol, name, version, Need::need == Need::required, Pace::pace == Pace::blocks},
#include "entry_points.def"
#undef FTCUDA_ENTRY
}};

}  // namespace

const EntryDescription& describe(Entry entry) noexcept { return descriptions[static_cast<std::size_t>(entry)]; }

bool is_sticky(CUresult code) noexcept {
    switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED: return true;
    default: return false;
    }
}

const char* error_name(CUresult code) noexcept {
    const char* name = nullptr;
    if (!cu.cuGetErrorName(code, &name).ok() || name == nullptr) return "CUDA_ERROR_UNRECOGNIZED";
    return name;
}

const char* error_text(CUresult code) noexcept {
    const char* text = nullptr;
    if (!cu.cuGetErrorString(code, &text).ok() || text == nullptr) return "an error this driver has no text for";
    return text;
}

}  // namespace ftcuda::driver
