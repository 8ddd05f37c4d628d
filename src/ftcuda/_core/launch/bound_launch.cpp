#include "bound_launch.hpp"

#include "../sync/fork.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::core {

namespace {

static_assert(Device::limit <= 64);

std::uint64_t bit_of(int device) noexcept { return std::uint64_t{1} << device; }

}  // namespace

BoundArguments::BoundArguments(std::vector<std::size_t> offsets, std::size_t bytes)
    : offsets_(std::move(offsets)), block_(bytes), parameters_(offsets_.size()), arguments_(offsets_.size()) {
    point();
}

BoundArguments::BoundArguments(const BoundArguments& other)
    : Shared(), offsets_(other.offsets_), block_(other.block_), parameters_(offsets_.size()),
      arguments_(other.arguments_), buffers_(other.buffers_), mapped_(other.mapped_), devices_(other.devices_),
      any_foreign_(other.any_foreign_) {
    point();
}

void BoundArguments::point() noexcept {
    for (std::size_t index = 0; index < offsets_.size(); ++index) parameters_[index] = block_.data() + offsets_[index];
}

void BoundArguments::gather() {
    buffers_.clear();
    mapped_.clear();
    devices_ = 0;
    any_foreign_ = false;
    for (std::size_t index = 0; index < arguments_.size(); ++index) {
        const BoundArgument& each = arguments_[index];
        if (each.map) mapped_.push_back(index);
        if (each.buffer != nullptr) buffers_.push_back(each.buffer);
        if (each.device != BoundArgument::any_device) devices_ |= bit_of(each.device);
        any_foreign_ = any_foreign_ || each.foreign;
    }
}

void BoundArguments::put(std::size_t index, const void* from, std::size_t bytes, BoundArgument argument) {
    std::memcpy(parameters_[index], from, bytes);
    arguments_[index] = std::move(argument);
    gather();
}

Status BoundArguments::launch(Stream& stream, const LaunchShape& shape, Kernel& kernel,
                              std::vector<Ref<TensorMapState>>& maps) const {
    if ((devices_ & ~bit_of(stream.context().device().ordinal())) != 0) return Reason::wrong_device;
    if (!mapped_.empty()) return launch_mapped(stream, shape, kernel, maps);
    return launch_inside(stream, shape, kernel, const_cast<void**>(parameters_.data()), buffers_.data(),
                         buffers_.size());
}

Status BoundArguments::launch_mapped(Stream& stream, const LaunchShape& shape, Kernel& kernel,
                                     std::vector<Ref<TensorMapState>>& maps) const {
    std::vector<void*> parameters = parameters_;
    std::vector<Buffer*> buffers = buffers_;
    const auto map_of = [this](std::size_t index) { return arguments_[index].map.get(); };
    for (const std::size_t index : mapped_) {
        // A map that is given twice is the same in both places.
        const auto same = std::find_if(mapped_.begin(), mapped_.end(),
                                       [&](std::size_t other) { return map_of(other) == map_of(index); });
        const std::size_t first = static_cast<std::size_t>(same - mapped_.begin());
        maps.push_back(first < maps.size() ? maps[first] : map_of(index)->state());
        parameters[index] = const_cast<void*>(maps.back()->bytes());
        if (Buffer* const buffer = maps.back()->buffer(); buffer != nullptr) buffers.push_back(buffer);
    }
    return launch_inside(stream, shape, kernel, parameters.data(), buffers.data(), buffers.size());
}

void BoundLaunch::set(std::size_t index, const void* from, std::size_t bytes, BoundArgument argument) {
    arguments_.replace([&](const BoundArguments& current) {
        Ref<BoundArguments> changed = Ref<BoundArguments>::adopt(new BoundArguments(current));
        changed->put(index, from, bytes, std::move(argument));
        return changed;
    });
}

Status BoundLaunch::launch(Stream& stream, BoundUse& used) {
    // First: who waits for another thread's section is to have the arguments of when it is over.
    const Submission submission(stream);
    if (!submission.status().ok()) return submission.status();
    if (is_forked()) return Reason::forked;
    used.arguments = arguments_.load();
    return used.arguments->launch(stream, shape_, *kernel_, used.maps);
}

}  // namespace ftcuda::core
