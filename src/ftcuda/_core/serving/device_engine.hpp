// Computes batches on a device, in lanes of their own (device_lane.hpp).
#pragma once

#include "../completion/deferred_release.hpp"
#include "batcher.hpp"
#include "device_lane.hpp"

#include <algorithm>

namespace ftcuda::core::serving {

class DeviceEngine final : public Engine {
public:
    // `sizes`: of batches. `memory`: all slabs are in it. `keeper`: what keeps all of it usable.
    DeviceEngine(std::vector<std::size_t> sizes, std::vector<Ref<DeviceLane>> lanes, Ref<Buffer> memory,
                 Ref<deferred_release::ForeignReference> keeper)
        : sizes_(std::move(sizes)), lanes_(std::move(lanes)), memory_(std::move(memory)), keeper_(std::move(keeper)) {}
    ~DeviceEngine() override {
        for (const Ref<DeviceLane>& each : lanes_) each->end();
    }

    void launch(std::size_t lane, Slab& slab, std::size_t size) noexcept override {
        const auto index = std::lower_bound(sizes_.begin(), sizes_.end(), size) - sizes_.begin();
        lanes_[lane]->launch(*memory_, slab, static_cast<std::size_t>(index), size);
    }
    Status ask(std::size_t lane, Ref<Shared>& cause) noexcept override { return lanes_[lane]->ask(cause); }
    bool is_lost() const noexcept override { return lanes_.front()->is_lost(); }

private:
    // Constant after construction.
    const std::vector<std::size_t> sizes_;
    const std::vector<Ref<DeviceLane>> lanes_;
    const Ref<Buffer> memory_;
    const Ref<deferred_release::ForeignReference> keeper_;
};

// Pinned memory that a batcher's slabs need.
std::size_t slab_bytes(const Policy& policy, const RowSizes& inputs, const RowSizes& outputs) noexcept;

// Starts a batcher with slabs in `memory`, which has as many bytes. `lanes`: as many as the policy says.
Ref<Batcher> serve(Policy policy, RowSizes inputs, RowSizes outputs, std::vector<Ref<DeviceLane>> lanes,
                   Ref<Buffer> memory, Ref<deferred_release::ForeignReference> keeper);

}  // namespace ftcuda::core::serving
