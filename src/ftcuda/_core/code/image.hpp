// Kernel images: what kind they are, and the parameters of the kernels in them.
//
// Images come from outside, so every read is checked and malformed input is an answer ("no layout"), never a crash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ftcuda::core {

enum class ImageKind : unsigned char { unknown, ptx, cubin, fatbin };

ImageKind image_kind(std::string_view image) noexcept;

// False if the image says that it is longer than it is: a driver, which is told only where an image begins, would read
// on.
bool is_whole(std::string_view image) noexcept;

// What a parameter may be given. PTX tells; a cubin tells sizes only.
enum class ParameterKind : unsigned char {
    unknown,
    integer,  // .u8 to .u64, .s8 to .s64, .b8 to .b64; pointers are .u64
    float32,
    float64,
    bytes,  // an aggregate passed by value, float16 too
};

struct Parameter {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
    ParameterKind kind = ParameterKind::unknown;
};

struct ParameterLayout {
    std::vector<Parameter> parameters;

    // From PTX the offset of a parameter aligned to more than 16 bytes cannot be told: the alignment applies to the
    // place in the constant bank, whose base differs between architectures. Sizes and order are always right.
    bool offsets_known = true;
};

// The layout of kernel `name` (as the image has it). False when the image does not tell.
bool parameter_layout(std::string_view image, std::string_view name, ParameterLayout& layout);

// The kernels in the image, as far as it tells.
std::vector<std::string> kernel_names(std::string_view image);

}  // namespace ftcuda::core
