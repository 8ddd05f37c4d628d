#include "bound_launch.hpp"

#include "../sync/fork.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::core {

namespace {

static_assert(Device::limit <= 64);

std::uint64_t bit_of(int device) noexcept { return std::uint64_t{1} << device; }

}  // namespace

BoundArguments::BoundArguments(const ArgumentLayout& layout)
    : layout_(layout), block_(layout.bytes), parameters_(layout.slots.size()), arguments_(layout.slots.size()) {
    gather();
}

BoundArguments::BoundArguments(const BoundArguments& other)
    : Shared(), layout_(other.layout_), block_(other.block_), parameters_(other.parameters_.size()),
      arguments_(other.arguments_), states_(other.states_) {
    gather();
}

void BoundArguments::gather() {
    buffers_.clear();
    maps_.clear();
    devices_ = 0;
    any_foreign_ = false;
    for (std::size_t index = 0; index < arguments_.size(); ++index) {
        const BoundArgument& each = arguments_[index];
        parameters_[index] = block_.data() + layout_.slots[index].offset;
        if (each.map != nullptr) maps_.push_back({index, each.map});
        if (each.buffer != nullptr) buffers_.push_back(each.buffer);
        if (each.device != Argument::any_device) devices_ |= bit_of(each.device);
        any_foreign_ = any_foreign_ || each.foreign;
    }
    gathered_ = {parameters_.data(), {buffers_.data(), buffers_.size(), nullptr}, maps_.data(), maps_.size()};
}

void BoundArguments::put(std::size_t index, const char* block, BoundArgument argument) {
    const ArgumentLayout::Slot& slot = layout_.slots[index];
    std::memcpy(block_.data() + slot.offset, block + slot.offset, slot.size);
    arguments_[index] = std::move(argument);
    gather();
}

bool BoundArguments::are_for(const Context& context) const noexcept {
    return (devices_ & ~bit_of(context.device().ordinal())) == 0;
}

Status BoundArguments::get(Context& context, Arguments& arguments) const noexcept {
    if (!are_for(context)) return Reason::wrong_device;
    arguments = gathered_;
    return {};
}

void BoundArguments::fix_maps() {
    if (maps_.empty()) return;
    std::vector<TensorMap*> read;  // one that is given twice is the same in both places
    for (const auto& [index, map] : maps_) {
        const auto same = static_cast<std::size_t>(std::find(read.begin(), read.end(), map) - read.begin());
        states_.push_back(same < read.size() ? states_[same] : map->state());
        read.push_back(map);
        const TensorMapState& state = *states_.back();
        const ArgumentLayout::Slot& slot = layout_.slots[index];
        std::memcpy(block_.data() + slot.offset, state.bytes(), slot.size);
        BoundArgument& argument = arguments_[index];
        argument.map = nullptr;
        argument.buffer = state.buffer();
        argument.foreign = state.is_foreign();
    }
    gather();
}

Status BoundArguments::launch(Stream& stream, const LaunchShape& shape, Kernel& kernel) {
    if (!are_for(stream.context())) return Reason::wrong_device;
    if (any_foreign_) return launch_foreign(stream, shape, kernel);
    return launch_inside(stream, shape, kernel, gathered_);
}

Status BoundArguments::launch_foreign(Stream& stream, const LaunchShape& shape, Kernel& kernel) {
    deferred_release::Retention foreign;
    deferred_release::retain(foreign, Ref<Shared>(*this));
    Arguments arguments = gathered_;
    arguments.operands.foreign = &foreign;
    return launch_inside(stream, shape, kernel, arguments);
}

void BoundLaunch::set(std::size_t index, const char* block, BoundArgument argument) {
    arguments_.replace([&](const BoundArguments& current) {
        Ref<BoundArguments> changed = Ref<BoundArguments>::adopt(new BoundArguments(current));
        changed->put(index, block, std::move(argument));
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
