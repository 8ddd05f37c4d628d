// Tensor maps. They are checked as cuda.h 13.5 says and coded in a way of our own (ptx/tensor_map.hpp), in which the
// interpreter reads them.
#include "../calls/gate.hpp"
#include "../ptx/tensor_map.hpp"
#include "../state/profile.hpp"

#include <cstring>

namespace ftcuda::sim {

using namespace abi;

namespace {

using ptx::TensorMap;

constexpr unsigned max_rank = TensorMap::max_rank;

// Bytes of an element, by CUtensorMapDataType. The packed types of 4 and 6 bits are not offered.
constexpr std::uint64_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr int types = sizeof(sizes) / sizeof(sizes[0]);

bool is_floating(int type) noexcept { return type >= 6; }
bool is_rounded(int type) noexcept { return type >= 10; }  // FLOAT32_FTZ, TFLOAT32, TFLOAT32_FTZ

std::uint64_t hash(std::uint64_t seed, std::uint64_t value) noexcept {
    return (seed ^ value) * 0x9e37'79b9'7f4a'7c15u + (seed >> 29);
}

struct TileLayout {
    int type;
    unsigned rank;
    std::uint64_t address;
    const std::uint64_t* extents;
    const std::uint64_t* strides;
    const std::uint32_t* element_strides;
    int interleave, swizzle, promotion, fill;
};

bool is_valid(const TileLayout& layout, std::uint64_t inner_bytes) {
    constexpr int interleave_32 = 2, swizzle_32 = 1, swizzle_64 = 2, swizzle_128 = 3;
    if (layout.type < 0 || layout.type >= types || layout.rank == 0 || layout.rank > max_rank) return false;
    if (layout.interleave < 0 || layout.interleave > interleave_32 || (layout.interleave != 0 && layout.rank < 3))
        return false;
    if (layout.swizzle < 0 || layout.swizzle > swizzle_128 || layout.promotion < 0 || layout.promotion > 3)
        return false;
    if (layout.fill < 0 || layout.fill > 1 || (layout.fill == 1 && !is_floating(layout.type))) return false;
    const std::uint64_t unit = layout.interleave == interleave_32 ? 32 : 16;
    if (layout.address % unit != 0) return false;
    for (unsigned i = 0; i < layout.rank; ++i) {
        if (layout.extents[i] == 0 || layout.extents[i] > std::uint64_t{1} << 31) return false;
        if (layout.element_strides[i] == 0 || layout.element_strides[i] > 8) return false;
        if (i + 1 < layout.rank && (layout.strides[i] % unit != 0 || layout.strides[i] >= std::uint64_t{1} << 40))
            return false;
    }
    if (layout.interleave == interleave_32) return layout.swizzle == swizzle_32;
    if (layout.interleave != 0) return true;
    if (layout.swizzle == swizzle_32 && inner_bytes > 32) return false;
    if (layout.swizzle == swizzle_64 && inner_bytes > 64) return false;
    return layout.swizzle != swizzle_128 || inner_bytes <= 128;
}

TensorMap::Mode mode_of(const TileLayout& layout, const std::uint32_t* box) noexcept {
    if (box == nullptr) return TensorMap::im2col;
    if (layout.interleave != 0) return TensorMap::interleaved;
    if (layout.swizzle != 0) return TensorMap::swizzled;
    if (layout.fill != 0) return TensorMap::nan_fill;
    if (is_rounded(layout.type)) return TensorMap::rounded;
    for (unsigned i = 1; i < layout.rank; ++i) {  // cuda.h: without interleaving that of the first dimension is ignored
        if (layout.element_strides[i] != 1) return TensorMap::element_strides;
    }
    return TensorMap::plain;
}

// The map for a layout; `box` is null for one of im2col. Two maps are equal if they mean the same.
void write(CUtensorMap& map, const TileLayout& layout, std::uint64_t kind, const std::uint32_t* box) {
    TensorMap made;
    std::uint64_t sum = hash(kind, static_cast<std::uint64_t>(layout.type) << 32 | layout.rank);
    for (unsigned i = 0; i < layout.rank; ++i) {
        sum = hash(sum, layout.extents[i]);
        sum = hash(sum, layout.element_strides[i]);
        if (i + 1 < layout.rank) sum = hash(sum, made.strides[i] = layout.strides[i]);
        made.extents[i] = layout.extents[i];
        if (box != nullptr) made.last_of_box[i] = static_cast<std::uint8_t>(box[i] - 1);
    }
    for (const int value : {layout.interleave, layout.swizzle, layout.promotion, layout.fill})
        sum = hash(sum, static_cast<std::uint64_t>(value));
    made.magic = TensorMap::known;
    made.address = made.address_again = layout.address;
    made.sum = sum;
    made.rank = layout.rank;
    made.element_bytes = static_cast<std::uint32_t>(sizes[layout.type]);
    made.mode = mode_of(layout, box);
    static_assert(sizeof map == sizeof made, "one is the other");
    std::memcpy(&map, &made, sizeof map);
}

CUresult begin(CUtensorMap* map, const void* a, const void* b, const void* c) {
    if (compute_capability() < 90) return CUDA_ERROR_NOT_SUPPORTED;
    if (map == nullptr || reinterpret_cast<std::uintptr_t>(map) % 64 != 0) return CUDA_ERROR_INVALID_VALUE;
    return a == nullptr || b == nullptr || c == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap* map, int type, unsigned rank, void* address,
                                                  const std::uint64_t* extents, const std::uint64_t* strides,
                                                  const std::uint32_t* box, const std::uint32_t* element_strides,
                                                  int interleave, int swizzle, int promotion, int fill) {
    FTCUDA_SIM_ENTER(cuTensorMapEncodeTiled);
    if (const CUresult result = begin(map, extents, box, element_strides); result != CUDA_SUCCESS) return result;
    const TileLayout layout{type,       rank,    reinterpret_cast<std::uintptr_t>(address),
                            extents,    strides, element_strides,
                            interleave, swizzle, promotion,
                            fill};
    const std::uint64_t inner = type >= 0 && type < types ? box[0] * sizes[type] : 0;
    if (!is_valid(layout, inner) || (interleave == 0 && inner % 16 != 0)) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t kind = 1;
    for (unsigned i = 0; i < rank; ++i) {
        if (box[i] == 0 || box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
        kind = hash(kind, box[i]);
    }
    write(*map, layout, kind, box);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, int type, unsigned rank, void* address,
                                                   const std::uint64_t* extents, const std::uint64_t* strides,
                                                   const int* lower, const int* upper, std::uint32_t channels,
                                                   std::uint32_t pixels, const std::uint32_t* element_strides,
                                                   int interleave, int swizzle, int promotion, int fill) {
    FTCUDA_SIM_ENTER(cuTensorMapEncodeIm2col);
    if (const CUresult result = begin(map, extents, lower, upper); result != CUDA_SUCCESS) return result;
    const TileLayout layout{type,       rank,    reinterpret_cast<std::uintptr_t>(address),
                            extents,    strides, element_strides,
                            interleave, swizzle, promotion,
                            fill};
    const std::uint64_t inner = type >= 0 && type < types ? channels * sizes[type] : 0;
    if (element_strides == nullptr || rank < 3 || !is_valid(layout, inner)) return CUDA_ERROR_INVALID_VALUE;
    if (channels == 0 || channels > 256 || pixels == 0 || pixels > 1024) return CUDA_ERROR_INVALID_VALUE;
    const int limit = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
    std::uint64_t kind = hash(2, std::uint64_t{channels} << 32 | pixels);
    for (unsigned i = 0; i + 2 < rank; ++i) {
        for (const int corner : {lower[i], upper[i]}) {
            if (corner < -limit || corner >= limit) return CUDA_ERROR_INVALID_VALUE;
            kind = hash(kind, static_cast<std::uint64_t>(corner));
        }
    }
    write(*map, layout, kind, nullptr);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
    FTCUDA_SIM_ENTER(cuTensorMapReplaceAddress);
    if (map == nullptr || reinterpret_cast<std::uintptr_t>(address) % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
    TensorMap changed;
    std::memcpy(static_cast<void*>(&changed), map, sizeof changed);
    if (changed.magic != TensorMap::known) return CUDA_ERROR_INVALID_VALUE;
    changed.address = changed.address_again = reinterpret_cast<std::uintptr_t>(address);
    std::memcpy(map, &changed, sizeof changed);
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
