// The words of a tensor map: the driver writes them, and copies of tiles read them. The coding is our own.
#pragma once

#include <cstdint>

namespace ftcuda::sim::ptx {

struct TensorMap {
    static constexpr std::uint64_t known = 0x70616d726f736e74;
    static constexpr unsigned max_rank = 5;

    // How it says that tiles are copied. Only plain ones are.
    enum Mode : std::uint32_t { plain, im2col, interleaved, swizzled, element_strides, nan_fill, rounded };

    std::uint64_t magic = 0;  // `known`
    std::uint64_t address = 0;
    std::uint64_t sum = 0;  // over everything that the map says but the address
    std::uint64_t rank = 0;
    std::uint64_t extents[max_rank] = {};
    std::uint64_t strides[max_rank - 1] = {};  // bytes; of the second dimension and on
    std::uint8_t last_of_box[8] = {};          // by dimension, its extent less one
    std::uint32_t element_bytes = 0;
    Mode mode = plain;
    std::uint64_t address_again = 0;  // so that half of one map and half of another are no map
};

static_assert(sizeof(TensorMap) == 128, "as CUtensorMap");

}  // namespace ftcuda::sim::ptx
