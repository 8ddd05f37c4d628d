// The arguments that a node of one executable has, of a launch that was captured with parameters or scratch memory. The
// driver is told of others before a launch that needs them; those that run have what they were submitted with.
#pragma once

#include "scratch.hpp"

namespace ftcuda::core {

// For who has the executable.
class NodeArguments {
public:
    // `scratch`: the executable's own; null: it has what was captured.
    NodeArguments(const CapturedLaunch& launch, const Scratch* scratch);
    NodeArguments(NodeArguments&&) noexcept = default;
    NodeArguments& operator=(NodeArguments&&) noexcept = default;

    // In place of an argument, by its index; null: as it was captured.
    void put(std::size_t index, const void* bytes) noexcept;
    // The same of the launch's shape.
    void put(const LaunchShape* shape) noexcept;
    // All as they were captured.
    void reset() noexcept;
    // What was put since, if that is anything new. After a failure the next call tells it again.
    Status tell(Context& context, abi::CUgraphExec executable) noexcept;

private:
    void put(std::size_t offset, const void* bytes, std::size_t size) noexcept;
    // What depends on the dimensions.
    Status complete(Context& context) noexcept;

    const CapturedLaunch* launch_;
    const ArgumentLayout::Slot* slots_;
    std::vector<char> captured_;  // with this executable's scratch memory
    std::array<unsigned, 7> dimensions_;
    std::vector<char> block_;
    std::vector<void*> parameters_;             // into the block
    abi::CUDA_KERNEL_NODE_PARAMS_v2 params_{};  // without a function until they are complete
    bool is_told_ = true;
};

}  // namespace ftcuda::core
