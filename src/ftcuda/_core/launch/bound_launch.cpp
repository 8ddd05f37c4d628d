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

Status BoundArguments::launch(Stream& stream, const LaunchShape& shape, Kernel& kernel) {
    if ((devices_ & ~bit_of(stream.context().device().ordinal())) != 0) return Reason::wrong_device;
    if (may_release()) return launch_foreign(stream, shape, kernel);
    Operands operands{buffers_.data(), buffers_.size()};
    return launch_inside(stream, shape, kernel, const_cast<void**>(parameters_.data()), operands);
}

Status BoundArguments::launch_foreign(Stream& stream, const LaunchShape& shape, Kernel& kernel) {
    std::vector<void*> parameters = parameters_;
    std::vector<Buffer*> buffers = buffers_;
    std::vector<Ref<TensorMapState>> maps;  // which hold the memory behind them until this returns
    deferred_release::Retention foreign;
    if (any_foreign_) deferred_release::retain(foreign, Ref<Shared>(*this));
    const auto map_of = [this](std::size_t index) { return arguments_[index].map.get(); };
    for (const std::size_t index : mapped_) {
        // A map that is given twice is the same in both places.
        const auto same = std::find_if(mapped_.begin(), mapped_.end(),
                                       [&](std::size_t other) { return map_of(other) == map_of(index); });
        const std::size_t first = static_cast<std::size_t>(same - mapped_.begin());
        maps.push_back(first < maps.size() ? maps[first] : map_of(index)->state());
        parameters[index] = const_cast<void*>(maps.back()->bytes());
        Buffer* const buffer = maps.back()->buffer();
        if (buffer != nullptr) {
            buffers.push_back(buffer);
        } else {
            deferred_release::retain(foreign, Ref<Shared>(*maps.back()));
        }
    }
    Operands operands{buffers.data(), buffers.size(), foreign ? &foreign : nullptr};
    return launch_inside(stream, shape, kernel, parameters.data(), operands);
}

void BoundLaunch::set(std::size_t index, const void* from, std::size_t bytes, BoundArgument argument) {
    arguments_.replace([&](const BoundArguments& current) {
        Ref<BoundArguments> changed = Ref<BoundArguments>::adopt(new BoundArguments(current));
        changed->put(index, from, bytes, std::move(argument));
        return changed;
    });
}

Status BoundLaunch::launch(Stream& stream, Ref<BoundArguments>& used) {
    // First: who waits for another thread's section is to have the arguments of when it is over.
    const Submission submission(stream);
    if (!submission.status().ok()) return submission.status();
    if (is_forked()) return Reason::forked;
    used = arguments_.load();
    return used->launch(stream, shape_, *kernel_);
}

}  // namespace ftcuda::core
