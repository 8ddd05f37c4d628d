// A launch whose kernel, shape and arguments are bound. set() and launch() are atomic against each other, from any thread.
//
// Launches in different threads write nothing in common but the leases of buffers that they share: each thread takes the arguments
// from a stripe, which has a copy of its own. set() empties all stripes, and only then lets anybody see the new arguments, since a
// launch that finds its stripe empty waits for the set: once one launch had the new arguments, none has the old.
#pragma once

#include "kept.hpp"
#include "launch.hpp"

#include <vector>

namespace ftcuda::core {

// One argument, beside its bytes.
struct BoundArgument {
    Ref<kept::Guest> value;    // what the caller gave, which keeps `buffer`
    Buffer* buffer = nullptr;  // null: a value, or memory that is not ours
    bool foreign = false;      // memory that is not ours: the value is kept until the work is done
    int device = any_device;   // the one that `value` is for

    static constexpr int any_device = -1;
};

// All arguments of one moment. Constant once others see them.
class BoundArguments final : public Shared {
public:
    // `offsets[i]` is where argument i stands among the `bytes` of all.
    BoundArguments(std::vector<std::size_t> offsets, std::size_t bytes);
    // A copy with counts of its own.
    explicit BoundArguments(const BoundArguments& other);

    // Before others see them.
    void put(std::size_t index, const void* from, std::size_t bytes, BoundArgument argument);

    std::size_t count() const noexcept { return arguments_.size(); }
    void* value(std::size_t index) const noexcept { return arguments_[index].value->object(); }
    bool any_foreign() const noexcept { return any_foreign_; }
    bool is_foreign(std::size_t index) const noexcept { return arguments_[index].foreign; }

    Status launch(Stream& stream, const LaunchShape& shape, Kernel& kernel) const noexcept;

private:
    ~BoundArguments() override = default;
    void point() noexcept;
    void gather();

    const std::vector<std::size_t> offsets_;
    std::vector<char> block_;
    std::vector<void*> parameters_;  // into the block
    std::vector<BoundArgument> arguments_;

    // What a launch needs of the arguments: gathered by put().
    std::vector<Buffer*> buffers_;
    std::uint64_t devices_ = 0;  // a bit for each that an argument is for
    bool any_foreign_ = false;
};

class BoundLaunch final : public Shared {
public:
    // `shape` outlives this object.
    BoundLaunch(Kernel& kernel, const LaunchShape& shape, Ref<BoundArguments> arguments);

    void set(std::size_t index, const void* from, std::size_t bytes, BoundArgument argument) EXCLUDES(mutex_);

    // `used`: the arguments it was launched with.
    Status launch(Stream& stream, Ref<BoundArguments>& used) EXCLUDES(mutex_);

    Ref<BoundArguments> arguments() EXCLUDES(mutex_);

private:
    struct alignas(64) Stripe {
        Mutex mutex{Rank::bound_stripe};
        Ref<BoundArguments> arguments GUARDED_BY(mutex);  // null until a launch needs them
    };

    ~BoundLaunch() override = default;
    Ref<BoundArguments> take() EXCLUDES(mutex_);

    // Constant after construction.
    const Ref<Kernel> kernel_;
    const LaunchShape& shape_;

    // Synchronise themselves.
    std::array<Stripe, 16> stripes_;

    Mutex mutex_{Rank::bound_launch};
    Ref<BoundArguments> current_ GUARDED_BY(mutex_);
};

}  // namespace ftcuda::core
