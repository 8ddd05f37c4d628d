// Rows: what a request and a batch are made of. A row has some bytes of each input and of each output; memory for many
// rows has those of one input after the other.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace ftcuda::core::serving {

// Bytes of a row in each array.
using RowSizes = std::vector<std::size_t>;

// Memory of many rows: an address for each array.
class Rows {
public:
    Rows() = default;
    // In one piece of memory, in which each array begins at a multiple of `alignment`.
    Rows(std::byte* memory, const RowSizes& sizes, std::size_t count) {
        for (const std::size_t size : sizes) {
            arrays_.push_back(memory);
            memory += aligned(size * count);
        }
    }
    explicit Rows(std::vector<std::byte*> arrays) : arrays_(std::move(arrays)) {}

    static constexpr std::size_t alignment = 256;
    static std::size_t bytes(const RowSizes& sizes, std::size_t count) noexcept {
        std::size_t bytes = 0;
        for (const std::size_t size : sizes) bytes += aligned(size * count);
        return bytes;
    }

    void clear(std::size_t row, std::size_t count, const RowSizes& sizes) const noexcept {
        for (std::size_t each = 0; each < sizes.size(); ++each)
            std::memset(arrays_[each] + row * sizes[each], 0, count * sizes[each]);
    }

    std::byte* array(std::size_t index) const noexcept { return arrays_[index]; }

    // Rows may overlap only within the same memory, towards its begin.
    void copy_from(std::size_t row, const Rows& from, std::size_t from_row, std::size_t count,
                   const RowSizes& sizes) const noexcept {
        for (std::size_t each = 0; each < sizes.size(); ++each)
            std::memmove(arrays_[each] + row * sizes[each], from.arrays_[each] + from_row * sizes[each],
                         count * sizes[each]);
    }

private:
    static constexpr std::size_t aligned(std::size_t bytes) noexcept {
        return (bytes + alignment - 1) / alignment * alignment;
    }

    std::vector<std::byte*> arrays_;
};

}  // namespace ftcuda::core::serving
