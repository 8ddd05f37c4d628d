#include "tensor_map.hpp"

#include "../_driver/table.hpp"

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

void* as_pointer(CUdeviceptr address) noexcept {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

Status TensorMap::tiled(Context& context, const Tensor& tensor, const std::array<std::uint32_t, Tensor::max_rank>& box, Ref<TensorMap>& map) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    Ref<TensorMap> made = Ref<TensorMap>::adopt(new TensorMap);
    const Status status = context.observe(cu.cuTensorMapEncodeTiled(
        &made->map_, tensor.type, tensor.rank, as_pointer(tensor.address), tensor.extents.data(), tensor.strides.data(), box.data(),
        tensor.element_strides.data(), tensor.interleave, tensor.swizzle, tensor.promotion, tensor.fill));
    if (status.ok()) map = std::move(made);
    return status;
}

Status TensorMap::im2col(Context& context, const Tensor& tensor, const Im2col& columns, Ref<TensorMap>& map) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    Ref<TensorMap> made = Ref<TensorMap>::adopt(new TensorMap);
    const Status status = context.observe(cu.cuTensorMapEncodeIm2col(
        &made->map_, tensor.type, tensor.rank, as_pointer(tensor.address), tensor.extents.data(), tensor.strides.data(),
        columns.lower.data(), columns.upper.data(), columns.channels, columns.pixels, tensor.element_strides.data(),
        tensor.interleave, tensor.swizzle, tensor.promotion, tensor.fill));
    if (status.ok()) map = std::move(made);
    return status;
}

Status TensorMap::at(Context& context, CUdeviceptr address, Ref<TensorMap>& map) const {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    Ref<TensorMap> made = Ref<TensorMap>::adopt(new TensorMap);
    made->map_ = map_;
    const Status status = context.observe(cu.cuTensorMapReplaceAddress(&made->map_, as_pointer(address)));
    if (status.ok()) map = std::move(made);
    return status;
}

}  // namespace ftcuda::core
