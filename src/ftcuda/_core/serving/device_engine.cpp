#include "device_engine.hpp"

namespace ftcuda::core::serving {

std::size_t slab_bytes(const Policy& policy, const RowSizes& inputs, const RowSizes& outputs) noexcept {
    const std::size_t capacity = policy.capacity();
    return policy.slabs() * policy.priorities * (Rows::bytes(inputs, capacity) + Rows::bytes(outputs, capacity));
}

Ref<Batcher> serve(Policy policy, RowSizes inputs, RowSizes outputs, std::vector<Ref<DeviceLane>> lanes,
                   Ref<Buffer> memory, Ref<deferred_release::ForeignReference> keeper) {
    const std::size_t capacity = policy.capacity();
    std::vector<std::unique_ptr<Slab>> slabs;
    auto* begin = reinterpret_cast<std::byte*>(memory->pointer());
    for (std::size_t index = 0; index < policy.slabs() * policy.priorities; ++index) {
        std::byte* const middle = begin + Rows::bytes(inputs, capacity);
        slabs.push_back(
            std::make_unique<Slab>(capacity, Rows(begin, inputs, capacity), Rows(middle, outputs, capacity)));
        begin = middle + Rows::bytes(outputs, capacity);
    }
    auto engine = std::make_unique<DeviceEngine>(policy.sizes, std::move(lanes), std::move(memory), std::move(keeper));
    return Batcher::start(std::move(policy), std::move(inputs), std::move(outputs), std::move(engine),
                          std::move(slabs));
}

}  // namespace ftcuda::core::serving
