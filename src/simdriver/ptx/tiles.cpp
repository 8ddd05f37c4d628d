// cp.async.bulk.tensor: tiles of a tensor that a map describes, to shared memory and from there. Done at once, as all
// asynchronous copies are.
#include <algorithm>

#include "machine.hpp"
#include "tensor_map.hpp"

namespace ftcuda::sim::ptx {

namespace {

const char* name_of(TensorMap::Mode mode) noexcept {
    switch (mode) {
    case TensorMap::plain: return "plain";
    case TensorMap::im2col: return "im2col";
    case TensorMap::interleaved: return "interleaved";
    case TensorMap::swizzled: return "swizzled";
    case TensorMap::element_strides: return "element strides other than 1";
    case TensorMap::nan_fill: return "filled with NaN outside of the tensor";
    case TensorMap::rounded: return "elements that are rounded: FLOAT32_FTZ, TFLOAT32";
    }
    return "unknown";
}

// The map at a generic address. False, after fail(), if there is none that a tile of `rank` dimensions can be copied
// by.
bool read_map(Warp& warp, const Instruction& instruction, unsigned lane, std::uint64_t address, TensorMap& map) {
    constexpr std::uint64_t alignment = 64;
    if (address % alignment != 0) {
        fail(warp, instruction, lane, Fault::misaligned_address, address, sizeof map);
        return false;
    }
    std::uint64_t words[sizeof map / sizeof(std::uint64_t)];
    for (std::size_t index = 0; index < std::size(words); ++index) {
        const std::byte* const word = reach(warp, instruction, lane, Space::generic, address + index * sizeof words[0],
                                            sizeof words[0], Access::read);
        if (word == nullptr) return false;
        std::memcpy(&words[index], word, sizeof words[0]);
    }
    std::memcpy(&map, words, sizeof map);
    if (map.magic != TensorMap::known || map.address != map.address_again || map.rank != instruction.count) {
        fail(warp, instruction, lane, Fault::no_tensor_map, address, sizeof map);
        return false;
    }
    if (map.mode == TensorMap::plain) return true;
    fail(warp, instruction, lane, Fault::tensor_map_mode, address, sizeof map);
    warp.machine->outcome.detail = name_of(map.mode);
    return false;
}

// Whether a tile can begin there: as on an H200, its innermost coordinate is a multiple of 16 bytes, and where a tile
// is stored, no coordinate is negative. Fails else.
bool can_begin(Warp& warp, const Instruction& instruction, unsigned lane, const TensorMap& map,
               const std::int64_t (&first)[TensorMap::max_rank]) {
    constexpr std::int64_t alignment = 16;
    const bool stores = instruction.option != 1;
    const char* wrong = nullptr;
    if (first[0] * map.element_bytes % alignment != 0) wrong = "its innermost coordinate is no multiple of 16 bytes";
    if (stores && std::any_of(first, first + map.rank, [](std::int64_t at) { return at < 0; }))
        wrong = "a coordinate of a tile that is stored is negative";
    if (wrong == nullptr) return true;
    fail(warp, instruction, lane, Fault::tile_place, map.address, sizeof map);
    warp.machine->outcome.detail = wrong;
    return false;
}

// One element. Outside of the tensor zeros are read, and nothing is written.
void copy_element(Warp& warp, const Instruction& instruction, unsigned lane, const TensorMap& map, bool inside,
                  std::uint64_t global, std::uint64_t shared) {
    const bool loads = instruction.option == 1;
    if (!loads && !inside) return;
    const std::size_t size = map.element_bytes;
    std::byte* const in_tile =
        reach(warp, instruction, lane, instruction.space, shared, size, loads ? Access::write : Access::read);
    if (in_tile == nullptr) return;
    if (!inside) {
        std::memset(in_tile, 0, size);
        return;
    }
    std::byte* const in_tensor =
        reach(warp, instruction, lane, Space::global, global, size, loads ? Access::read : Access::write);
    if (in_tensor != nullptr) std::memcpy(loads ? in_tile : in_tensor, loads ? in_tensor : in_tile, size);
}

}  // namespace

// a: the map; elements: where in the tensor; d, offset: the tile; option 1: it is loaded, and c, target is the barrier
// that is told.
void copy_tile(Warp& warp, const Instruction& instruction, std::uint32_t mask) {
    constexpr std::uint64_t tile_alignment = 128;  // PTX ISA, tensors: "alignment requirements" of shared memory
    each(mask, [&](unsigned lane) {
        TensorMap map;
        if (warp.machine->failed() || !read_map(warp, instruction, lane, in(warp, instruction.a)[lane], map)) return;
        const std::uint64_t tile = in(warp, instruction.d)[lane] + static_cast<std::uint64_t>(instruction.offset);
        if (tile % tile_alignment != 0)
            return fail(warp, instruction, lane, Fault::misaligned_address, tile, tile_alignment);
        std::int64_t first[TensorMap::max_rank] = {};
        std::uint64_t elements = 1;
        for (unsigned axis = 0; axis < map.rank; ++axis) {
            const RowRef row{instruction.elements[axis], instruction.element_constant[axis]};
            first[axis] = static_cast<std::int32_t>(in(warp, row)[lane]);
            elements *= map.last_of_box[axis] + std::uint64_t{1};
        }
        if (!can_begin(warp, instruction, lane, map, first)) return;
        for (std::uint64_t element = 0; element < elements && !warp.machine->failed(); ++element) {
            std::uint64_t rest = element;
            std::uint64_t global = map.address;
            bool inside = true;
            for (unsigned axis = 0; axis < map.rank; ++axis) {
                const std::uint64_t width = map.last_of_box[axis] + std::uint64_t{1};
                const std::int64_t at = first[axis] + static_cast<std::int64_t>(rest % width);
                rest /= width;
                inside = inside && at >= 0 && static_cast<std::uint64_t>(at) < map.extents[axis];
                global += static_cast<std::uint64_t>(at) * (axis == 0 ? map.element_bytes : map.strides[axis - 1]);
            }
            copy_element(warp, instruction, lane, map, inside, global, tile + element * map.element_bytes);
        }
        if (warp.machine->failed() || instruction.option != 1) return;
        const std::uint64_t barrier =
            in(warp, instruction.c)[lane] + static_cast<std::uint64_t>(static_cast<std::int32_t>(instruction.target));
        report_bytes(warp, instruction, lane, tile, barrier, elements * map.element_bytes);  // zeros count too
    });
}

}  // namespace ftcuda::sim::ptx
