#include "tensor_map.hpp"

#include "../../_driver/table.hpp"
#include "../memory/buffer.hpp"

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

void* as_pointer(CUdeviceptr address) noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

}  // namespace

bool TensorMapState::is_foreign() const noexcept {
    return memory_.buffer == nullptr || memory_.buffer->holder() != nullptr;
}

Status TensorMap::tiled(Context& context, const Tensor& tensor, const std::array<std::uint32_t, Tensor::max_rank>& box,
                        MappedMemory memory, Ref<TensorMap>& map) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    CUtensorMap made{};
    const Status status = context.observe(cu.cuTensorMapEncodeTiled(
        &made, tensor.type, tensor.rank, as_pointer(tensor.address), tensor.extents.data(), tensor.strides.data(),
        box.data(), tensor.element_strides.data(), tensor.interleave, tensor.swizzle, tensor.promotion, tensor.fill));
    if (status.ok()) map = Ref<TensorMap>::adopt(new TensorMap(made, std::move(memory)));
    return status;
}

Status TensorMap::im2col(Context& context, const Tensor& tensor, const Im2col& columns, MappedMemory memory,
                         Ref<TensorMap>& map) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    CUtensorMap made{};
    const Status status = context.observe(cu.cuTensorMapEncodeIm2col(
        &made, tensor.type, tensor.rank, as_pointer(tensor.address), tensor.extents.data(), tensor.strides.data(),
        columns.lower.data(), columns.upper.data(), columns.channels, columns.pixels, tensor.element_strides.data(),
        tensor.interleave, tensor.swizzle, tensor.promotion, tensor.fill));
    if (status.ok()) map = Ref<TensorMap>::adopt(new TensorMap(made, std::move(memory)));
    return status;
}

Status TensorMap::replace_address(Context& context, CUdeviceptr address, MappedMemory memory) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    CUtensorMap changed = state()->map();  // of whatever moment: only the address differs between them
    if (const Status status = context.observe(cu.cuTensorMapReplaceAddress(&changed, as_pointer(address)));
        !status.ok())
        return status;
    states_.replace([&](const TensorMapState&) {
        return Ref<TensorMapState>::adopt(new TensorMapState(changed, std::move(memory)));
    });
    return {};
}

}  // namespace ftcuda::core
