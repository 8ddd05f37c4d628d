// What a call of the driver came to: success, or why not. Eight bytes, passed in a register, made without allocating.
#pragma once

#include "abi.hpp"

#include <cstdint>

namespace ftcuda::driver {

// One enumerator per line of entry_points.def.
enum class Entry : std::uint16_t {
    none,
#define FTCUDA_ENTRY(symbol, name, version, need, pace, parameters) symbol,
#include "entry_points.def"
#undef FTCUDA_ENTRY
    count,
};

struct EntryDescription {
    const char* symbol;  // what the library exports
    const char* name;    // what cuGetProcAddress is asked for
    int version;         // of the declaration: 1000 * major + 10 * minor
    bool required;
    bool blocks;  // may wait for the device
};

const EntryDescription& describe(Entry entry) noexcept;

// What only gives names to codes, and needs no device.
constexpr bool only_names(Entry entry) noexcept {
    return entry == Entry::cuGetErrorName || entry == Entry::cuGetErrorString;
}

enum class Reason : std::uint8_t {
    none,
    driver,            // the driver answered `code`
    absent,            // the driver has no such entry point
    in_host_function,  // the calling thread is in a function that a stream waits for (host_function.hpp)
};

class [[nodiscard]] Status {
public:
    constexpr Status() noexcept = default;
    constexpr Status(Reason reason, Entry entry = Entry::none, abi::CUresult code = 0) noexcept
        : code_(code), entry_(entry), reason_(reason) {}

    static constexpr Status from_driver(abi::CUresult code, Entry entry) noexcept {
        return Status(code == abi::CUDA_SUCCESS ? Reason::none : Reason::driver, entry, code);
    }

    constexpr bool ok() const noexcept { return reason_ == Reason::none; }
    constexpr Reason reason() const noexcept { return reason_; }
    constexpr Entry entry() const noexcept { return entry_; }
    constexpr abi::CUresult code() const noexcept { return code_; }

    // Success: silences [[nodiscard]] where a failure means nothing, and says so at the call.
    void ignore() const noexcept {}

private:
    abi::CUresult code_ = abi::CUDA_SUCCESS;
    Entry entry_ = Entry::none;
    Reason reason_ = Reason::none;
};

static_assert(sizeof(Status) == 8, "a Status travels in one register");

// True for the failures after which the driver refuses everything else in the context (some: in the process). Source:
// cuda.h 13.5, the CUresult comments that say the process must be terminated and relaunched.
bool is_sticky(abi::CUresult code) noexcept;

// The driver's own name and sentence for a code; a fixed text for codes that this driver does not know.
const char* error_name(abi::CUresult code) noexcept;
const char* error_text(abi::CUresult code) noexcept;

}  // namespace ftcuda::driver
