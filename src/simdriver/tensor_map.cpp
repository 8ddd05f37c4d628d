// Tensor maps. They are checked as cuda.h 13.5 says and coded in a way of our own; the interpreter does not
// load tiles with them.
#include "gate.hpp"
#include "profile.hpp"

namespace ftcuda::sim {

using namespace abi;

namespace {

constexpr std::uint64_t magic = 0x70616d726f736e74;  // that this is a map of ours
constexpr unsigned max_rank = 5;

// Bytes of an element, by CUtensorMapDataType. The packed types of 4 and 6 bits are not offered.
constexpr std::uint64_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr int types = sizeof(sizes) / sizeof(sizes[0]);

bool is_floating(int type) noexcept { return type >= 6; }

std::uint64_t hash(std::uint64_t seed, std::uint64_t value) noexcept {
    return (seed ^ value) * 0x9e37'79b9'7f4a'7c15u + (seed >> 29);
}

struct Layout {
    int type;
    unsigned rank;
    std::uint64_t address;
    const std::uint64_t* extents;
    const std::uint64_t* strides;
    const std::uint32_t* element_strides;
    int interleave, swizzle, promotion, fill;
};

bool is_valid(const Layout& layout, std::uint64_t inner_bytes) {
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

// The coding: what it is, the address, and a sum of everything else, so that two maps are equal if they mean the same.
void write(CUtensorMap& map, const Layout& layout, std::uint64_t kind) {
    map = {};
    std::uint64_t sum = hash(kind, static_cast<std::uint64_t>(layout.type) << 32 | layout.rank);
    for (unsigned i = 0; i < layout.rank; ++i) {
        sum = hash(sum, layout.extents[i]);
        sum = hash(sum, layout.element_strides[i]);
        if (i + 1 < layout.rank) sum = hash(sum, layout.strides[i]);
        map.opaque[4 + i] = layout.extents[i];
    }
    for (const int value : {layout.interleave, layout.swizzle, layout.promotion, layout.fill})
        sum = hash(sum, static_cast<std::uint64_t>(value));
    map.opaque[0] = magic;
    map.opaque[1] = layout.address;
    map.opaque[2] = sum;
    map.opaque[3] = layout.rank;
    map.opaque[15] = layout.address;  // at both ends, so that half of one map and half of another are no map
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
    const Layout layout{type,       rank,    reinterpret_cast<std::uintptr_t>(address),
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
    write(*map, layout, kind);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, int type, unsigned rank, void* address,
                                                   const std::uint64_t* extents, const std::uint64_t* strides,
                                                   const int* lower, const int* upper, std::uint32_t channels,
                                                   std::uint32_t pixels, const std::uint32_t* element_strides,
                                                   int interleave, int swizzle, int promotion, int fill) {
    FTCUDA_SIM_ENTER(cuTensorMapEncodeIm2col);
    if (const CUresult result = begin(map, extents, lower, upper); result != CUDA_SUCCESS) return result;
    const Layout layout{type,       rank,    reinterpret_cast<std::uintptr_t>(address),
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
    write(*map, layout, kind);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
    FTCUDA_SIM_ENTER(cuTensorMapReplaceAddress);
    if (map == nullptr || map->opaque[0] != magic || reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    map->opaque[1] = map->opaque[15] = reinterpret_cast<std::uintptr_t>(address);
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
