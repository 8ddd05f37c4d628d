#include "node_arguments.hpp"

#include "../../_driver/table.hpp"

#include <cstring>

namespace ftcuda::core {

namespace {

// What the driver calls the shape of a node; but for the attributes, which nobody replaces.
std::array<unsigned, 7> dimensions_of(const abi::CUlaunchConfig& config) noexcept {
    return {config.gridDimX,  config.gridDimY,  config.gridDimZ,      config.blockDimX,
            config.blockDimY, config.blockDimZ, config.sharedMemBytes};
}

template <std::size_t size>
bool replace(char* at, const void* bytes) noexcept {
    if (std::memcmp(at, bytes, size) == 0) return false;
    std::memcpy(at, bytes, size);
    return true;
}

// False if they are there already. Of the usual sizes, without calls of the C library.
bool replace(char* at, const void* bytes, std::size_t size) noexcept {
    if (size == 4) return replace<4>(at, bytes);
    if (size == 8) return replace<8>(at, bytes);
    if (std::memcmp(at, bytes, size) == 0) return false;
    std::memcpy(at, bytes, size);
    return true;
}

}  // namespace

NodeArguments::NodeArguments(const CapturedLaunch& launch)
    : launch_(&launch), dimensions_(dimensions_of(launch.shape().config())), block_(launch.arguments().block()),
      parameters_(launch.arguments().count()) {
    for (std::size_t index = 0; index < parameters_.size(); ++index)
        parameters_[index] = block_.data() + launch.kernel().arguments().slots[index].offset;
}

void NodeArguments::put(std::size_t offset, const void* bytes, std::size_t size) noexcept {
    if (replace(block_.data() + offset, bytes, size)) is_told_ = false;
}

void NodeArguments::put(std::size_t index, const void* bytes) noexcept {
    const ArgumentLayout::Slot& slot = launch_->kernel().arguments().slots[index];
    put(slot.offset, bytes != nullptr ? bytes : launch_->arguments().block().data() + slot.offset, slot.size);
}

void NodeArguments::put(const LaunchShape* shape) noexcept {
    const auto wanted = dimensions_of((shape != nullptr ? *shape : launch_->shape()).config());
    if (wanted == dimensions_) return;
    dimensions_ = wanted;
    is_told_ = false;
}

void NodeArguments::reset() noexcept {
    put(nullptr);
    put(0, launch_->arguments().block().data(), block_.size());
}

Status NodeArguments::tell(Context& context, abi::CUgraphExec executable) noexcept {
    if (is_told_) return {};
    Kernel& kernel = launch_->kernel();
    abi::CUDA_KERNEL_NODE_PARAMS_v2 node{};
    if (const Status status = kernel.function(context, node.func); !status.ok()) return status;
    const auto [grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes] = dimensions_;
    if (const Status status = kernel.allow_dynamic_shared(context, node.func, shared_bytes); !status.ok())
        return status;
    node.gridDimX = grid_x;
    node.gridDimY = grid_y;
    node.gridDimZ = grid_z;
    node.blockDimX = block_x;
    node.blockDimY = block_y;
    node.blockDimZ = block_z;
    node.sharedMemBytes = shared_bytes;
    node.kernelParams = parameters_.data();
    const Status status =
        context.observe(driver::cu.cuGraphExecKernelNodeSetParams_v2(executable, launch_->node(), &node));
    is_told_ = status.ok();
    return status;
}

}  // namespace ftcuda::core
