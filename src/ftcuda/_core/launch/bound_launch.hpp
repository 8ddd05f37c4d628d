// A launch whose kernel, shape and arguments are bound. set() and launch() are atomic against each other, from any
// thread.
//
// Launches in different threads write nothing in common but the leases of buffers that they share: see striped.hpp.
#pragma once

#include "../completion/deferred_release.hpp"
#include "../sync/striped.hpp"
#include "launch.hpp"
#include "tensor_map.hpp"

#include <vector>

namespace ftcuda::core {

// One argument, beside its bytes.
struct BoundArgument {
    Ref<deferred_release::ForeignReference> value;  // what the caller gave, which keeps `buffer`
    Buffer* buffer = nullptr;                       // null: a value, memory that is not ours, or a tensor map
    bool foreign = false;                           // memory that is not ours: the value is kept until the work is done
    int device = any_device;                        // the one that `value` is for
    Ref<TensorMap> map;  // a launch reads it as it is then, and its memory; null for what is no tensor map

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

    // Whether a launch may be the last to let go of something of the caller's.
    bool may_release() const noexcept { return any_foreign_ || !mapped_.empty(); }

    // By who is inside the stream, and holds this until the call returns. What holds memory that is not ours lives
    // until the work is done.
    Status launch(Stream& stream, const LaunchShape& shape, Kernel& kernel);

private:
    ~BoundArguments() override = default;
    void point() noexcept;
    void gather();
    Status launch_foreign(Stream& stream, const LaunchShape& shape, Kernel& kernel);

    const std::vector<std::size_t> offsets_;
    std::vector<char> block_;
    std::vector<void*> parameters_;  // into the block
    std::vector<BoundArgument> arguments_;

    // What a launch needs of the arguments: gathered by put().
    std::vector<Buffer*> buffers_;
    std::vector<std::size_t> mapped_;  // which arguments are tensor maps
    std::uint64_t devices_ = 0;        // a bit for each that an argument is for
    bool any_foreign_ = false;
};

class BoundLaunch final : public Shared {
public:
    // `shape` outlives this object.
    BoundLaunch(Kernel& kernel, const LaunchShape& shape, Ref<BoundArguments> arguments)
        : kernel_(kernel), shape_(shape), arguments_(std::move(arguments)) {}

    void set(std::size_t index, const void* from, std::size_t bytes, BoundArgument argument);

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
