// A tensor map: what the device's tensor memory accelerator must know of a tensor, in the driver's own coding.
#pragma once

#include "../completion/deferred_release.hpp"
#include "../sync/striped.hpp"

namespace ftcuda::core {

class Buffer;

// Dimensions innermost first, strides of all but the innermost one, in bytes.
struct Tensor {
    static constexpr unsigned max_rank = 5;

    int type = 0;  // CUtensorMapDataType
    unsigned rank = 0;
    abi::CUdeviceptr address = 0;
    std::array<std::uint64_t, max_rank> extents{};
    std::array<std::uint64_t, max_rank> strides{};
    std::array<std::uint32_t, max_rank> element_strides{};
    int interleave = 0, swizzle = 0, promotion = 0, fill = 0;
};

struct Im2col {
    std::array<int, Tensor::max_rank> lower{}, upper{};  // corners of the pixel box, innermost first
    std::uint32_t channels = 0, pixels = 0;
};

// Whose memory a map is of.
struct MappedMemory {
    Ref<deferred_release::ForeignReference> tensor;  // the caller's, which keeps `buffer`
    Buffer* buffer = nullptr;                        // null: memory that is not ours
};

// What a map is at one moment. Constant once others see it; who holds it holds the tensor.
class TensorMapState final : public Shared {
public:
    TensorMapState(const abi::CUtensorMap& map, MappedMemory memory) noexcept : map_(map), memory_(std::move(memory)) {}
    // A copy with a count of its own.
    TensorMapState(const TensorMapState& other) noexcept : Shared(), map_(other.map_), memory_(other.memory_) {}

    const abi::CUtensorMap& map() const noexcept { return map_; }
    const void* bytes() const noexcept { return &map_; }
    void* tensor() const noexcept { return memory_.tensor->object(); }
    Buffer* buffer() const noexcept { return memory_.buffer; }
    // Whether the memory is not ours: who launches with it retains this until the work is done.
    bool is_foreign() const noexcept;

private:
    ~TensorMapState() override = default;

    const abi::CUtensorMap map_;
    const MappedMemory memory_;
};

// Everything but the address, and the memory that is there, is constant.
class TensorMap final : public Shared {
public:
    static Status tiled(Context& context, const Tensor& tensor, const std::array<std::uint32_t, Tensor::max_rank>& box,
                        MappedMemory memory, Ref<TensorMap>& map);
    static Status im2col(Context& context, const Tensor& tensor, const Im2col& columns, MappedMemory memory,
                         Ref<TensorMap>& map);

    // A launch that takes the map from now on has the new address and holds the new memory; one that took it before,
    // the old.
    Status replace_address(Context& context, abi::CUdeviceptr address, MappedMemory memory);

    Ref<TensorMapState> state() { return states_.load(); }

private:
    TensorMap(const abi::CUtensorMap& map, MappedMemory memory)
        : states_(Ref<TensorMapState>::adopt(new TensorMapState(map, std::move(memory)))) {}
    ~TensorMap() override = default;

    Striped<TensorMapState> states_;  // synchronises itself
};

}  // namespace ftcuda::core
