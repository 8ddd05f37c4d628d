#include "replacement.hpp"

namespace ftcuda::core {

ReadReplacedMaps::ReadReplacedMaps(Replacement* replacements, std::size_t count, const Operands& operands)
    : operands_(operands) {
    for (std::size_t index = 0; index < count; ++index) {
        Replacement& each = replacements[index];
        if (each.map == nullptr) continue;
        if (states_.empty()) {
            buffers_.assign(operands.buffers, operands.buffers + operands.count);
            if (operands.foreign != nullptr) foreign_ = std::move(*operands.foreign);
        }
        states_.push_back(each.map->state());
        const TensorMapState& state = *states_.back();
        each.bytes = state.bytes();
        if (state.buffer() != nullptr) buffers_.push_back(state.buffer());
        if (state.is_foreign()) deferred_release::retain(foreign_, Ref<Shared>(*states_.back()));
    }
    if (!states_.empty()) operands_ = {buffers_.data(), buffers_.size(), foreign_ ? &foreign_ : nullptr};
}

}  // namespace ftcuda::core
