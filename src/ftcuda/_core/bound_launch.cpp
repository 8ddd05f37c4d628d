#include "bound_launch.hpp"

#include "threads.hpp"

#include <cstring>

namespace ftcuda::core {

namespace {

static_assert(Device::limit <= 64);

std::uint64_t bit_of(int device) noexcept {
    return std::uint64_t{1} << device;
}

}  // namespace

BoundArguments::BoundArguments(std::vector<std::size_t> offsets, std::size_t bytes)
    : offsets_(std::move(offsets)), block_(bytes), parameters_(offsets_.size()), arguments_(offsets_.size()) {
    point();
}

BoundArguments::BoundArguments(const BoundArguments& other)
    : Shared(), offsets_(other.offsets_), block_(other.block_), parameters_(offsets_.size()), arguments_(other.arguments_),
      buffers_(other.buffers_), devices_(other.devices_), any_foreign_(other.any_foreign_) {
    point();
}

void BoundArguments::point() noexcept {
    for (std::size_t index = 0; index < offsets_.size(); ++index) parameters_[index] = block_.data() + offsets_[index];
}

void BoundArguments::gather() {
    buffers_.clear();
    devices_ = 0;
    any_foreign_ = false;
    for (const BoundArgument& each : arguments_) {
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

Status BoundArguments::launch(Stream& stream, const LaunchShape& shape, Kernel& kernel) const noexcept {
    if ((devices_ & ~bit_of(stream.context().device().ordinal())) != 0) return Reason::wrong_device;
    return core::launch(stream, shape, kernel, const_cast<void**>(parameters_.data()), buffers_.data(), buffers_.size());
}

BoundLaunch::BoundLaunch(Kernel& kernel, const LaunchShape& shape, Ref<BoundArguments> arguments)
    : kernel_(kernel), shape_(shape), current_(std::move(arguments)) {}

void BoundLaunch::set(std::size_t index, const void* from, std::size_t bytes, BoundArgument argument) {
    std::array<Ref<BoundArguments>, std::tuple_size_v<decltype(stripes_)> + 1> old;  // let go of after the locks
    const Lock lock(mutex_);
    Ref<BoundArguments> changed = Ref<BoundArguments>::adopt(new BoundArguments(*current_));
    changed->put(index, from, bytes, std::move(argument));
    for (std::size_t number = 0; number < stripes_.size(); ++number) {
        Stripe& stripe = stripes_[number];
        const Lock of_stripe(stripe.mutex);
        old[number] = std::move(stripe.arguments);
    }
    old.back() = std::move(current_);
    current_ = std::move(changed);
}

Ref<BoundArguments> BoundLaunch::take() {
    Stripe& stripe = stripes_[number_of_this_thread() % stripes_.size()];
    {
        const Lock of_stripe(stripe.mutex);
        if (stripe.arguments) return stripe.arguments;
    }
    const Lock lock(mutex_);
    const Lock of_stripe(stripe.mutex);
    if (!stripe.arguments) stripe.arguments = Ref<BoundArguments>::adopt(new BoundArguments(*current_));
    return stripe.arguments;
}

Status BoundLaunch::launch(Stream& stream, Ref<BoundArguments>& used) {
    used = take();
    return used->launch(stream, shape_, *kernel_);
}

Ref<BoundArguments> BoundLaunch::arguments() {
    const Lock lock(mutex_);
    return current_;
}

}  // namespace ftcuda::core
