// A launch whose kernel, shape and arguments are bound. set() and launch() are atomic against each other, from any
// thread.
//
// Launches in different threads write nothing in common but the leases of buffers that they share: see striped.hpp.
#pragma once

#include "../sync/striped.hpp"
#include "launch.hpp"

#include <vector>

namespace ftcuda::core {

// One argument, beside its bytes, and what the caller gave, which keeps its buffer or its map.
struct BoundArgument : Argument {
    BoundArgument() noexcept = default;
    BoundArgument(const Argument& argument, Ref<deferred_release::ForeignReference> of_caller) noexcept
        : Argument(argument), value(std::move(of_caller)) {}

    Ref<deferred_release::ForeignReference> value;
};

// All arguments of one moment. Constant once others see them.
class BoundArguments final : public Shared {
public:
    // `layout` is of the kernel, which outlives every launch.
    explicit BoundArguments(const ArgumentLayout& layout);
    // A copy with counts of its own.
    explicit BoundArguments(const BoundArguments& other);

    // Before others see them. `block` has the argument where the layout has it.
    void put(std::size_t index, const char* block, BoundArgument argument);
    // Once, before others see them: all tensor maps become what they are now, in the block too. Launches read none
    // anew.
    void fix_maps();

    std::size_t count() const noexcept { return arguments_.size(); }
    const std::vector<char>& block() const noexcept { return block_; }
    void* value(std::size_t index) const noexcept { return arguments_[index].value->object(); }
    Buffer* buffer(std::size_t index) const noexcept { return arguments_[index].buffer; }

    // Whether a launch may be the last to let go of something of the caller's.
    bool may_release() const noexcept { return any_foreign_ || !maps_.empty(); }

    // What they are for who submits otherwise, and holds this; a reason, if one is for another device.
    Status get(Context& context, Arguments& arguments) const noexcept;

    // By who is inside the stream, and holds this until the call returns. What holds memory that is not ours lives
    // until the work is done.
    Status launch(Stream& stream, const LaunchShape& shape, Kernel& kernel);

private:
    ~BoundArguments() override = default;
    void gather();
    bool are_for(const Context& context) const noexcept;
    Status launch_foreign(Stream& stream, const LaunchShape& shape, Kernel& kernel);

    const ArgumentLayout& layout_;
    std::vector<char> block_;
    std::vector<void*> parameters_;  // into the block
    std::vector<BoundArgument> arguments_;
    std::vector<Ref<TensorMapState>> states_;  // of maps that were fixed: they hold the memory

    // What a launch needs of the arguments: gathered by put().
    std::vector<Buffer*> buffers_;
    std::vector<Arguments::Mapped> maps_;
    Arguments gathered_;         // but for `foreign`, which each launch has its own of
    std::uint64_t devices_ = 0;  // a bit for each that an argument is for
    bool any_foreign_ = false;
};

class BoundLaunch final : public Shared {
public:
    // `shape` outlives this object.
    BoundLaunch(Kernel& kernel, const LaunchShape& shape, Ref<BoundArguments> arguments)
        : kernel_(kernel), shape_(shape), arguments_(std::move(arguments)) {}

    void set(std::size_t index, const char* block, BoundArgument argument);

    // `used`: the arguments that it was launched with; null if it did not get into the stream.
    Status launch(Stream& stream, Ref<BoundArguments>& used);

    Ref<BoundArguments> arguments() { return arguments_.current(); }

private:
    ~BoundLaunch() override = default;

    // Constant after construction.
    const Ref<Kernel> kernel_;
    const LaunchShape& shape_;

    Striped<BoundArguments> arguments_;  // synchronises itself
};

}  // namespace ftcuda::core
