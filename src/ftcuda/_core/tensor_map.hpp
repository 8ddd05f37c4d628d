// A tensor map: what the device's tensor memory accelerator must know of a tensor, in the driver's own coding.
#pragma once

#include "context.hpp"
#include "lifetime.hpp"

namespace ftcuda::core {

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

// Constant after construction.
class TensorMap final : public Shared {
public:
    static Status tiled(Context& context, const Tensor& tensor, const std::array<std::uint32_t, Tensor::max_rank>& box, Ref<TensorMap>& map);
    static Status im2col(Context& context, const Tensor& tensor, const Im2col& columns, Ref<TensorMap>& map);
    // Another map, the same but for the address.
    Status at(Context& context, abi::CUdeviceptr address, Ref<TensorMap>& map) const;

    const void* bytes() const noexcept { return &map_; }
    static constexpr std::size_t size = sizeof(abi::CUtensorMap);

private:
    TensorMap() = default;
    ~TensorMap() override = default;

    alignas(128) abi::CUtensorMap map_{};
};

}  // namespace ftcuda::core
