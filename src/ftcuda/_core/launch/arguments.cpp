#include "arguments.hpp"

#include <algorithm>
#include <utility>

namespace ftcuda::core {

ReadMaps::ReadMaps(const Arguments& arguments, std::size_t parameter_count)
    : parameters_(arguments.parameters, arguments.parameters + parameter_count),
      buffers_(arguments.operands.buffers, arguments.operands.buffers + arguments.operands.count) {
    if (arguments.operands.foreign != nullptr) foreign_ = std::move(*arguments.operands.foreign);
    const Arguments::Mapped* const maps = arguments.maps;
    for (std::size_t index = 0; index < arguments.map_count; ++index) {
        const auto same =
            std::find_if(maps, maps + index, [&](const auto& each) { return each.map == maps[index].map; });
        const std::size_t first = static_cast<std::size_t>(same - maps);
        states_.push_back(first < index ? states_[first] : maps[index].map->state());
        const TensorMapState& state = *states_.back();
        parameters_[maps[index].index] = const_cast<void*>(state.bytes());
        if (state.buffer() != nullptr) buffers_.push_back(state.buffer());
        if (state.is_foreign()) deferred_release::retain(foreign_, Ref<Shared>(*states_.back()));
    }
    arguments_.parameters = parameters_.data();
    arguments_.operands = {buffers_.data(), buffers_.size(), foreign_ ? &foreign_ : nullptr};
}

}  // namespace ftcuda::core
