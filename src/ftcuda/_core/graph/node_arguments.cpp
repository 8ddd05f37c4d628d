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

NodeArguments::NodeArguments(const CapturedLaunch& launch, const Scratch* scratch)
    : launch_(&launch), slots_(launch.kernel().arguments().slots.data()), captured_(launch.arguments().block()),
      dimensions_(dimensions_of(launch.shape().config())), block_(captured_), parameters_(launch.arguments().count()) {
    if (scratch != nullptr) {
        for (const std::size_t index : launch.scratch()) {
            const abi::CUdeviceptr pointer = scratch->in_place_of(*launch.arguments().buffer(index));
            std::memcpy(captured_.data() + slots_[index].offset, &pointer, sizeof pointer);
        }
        reset();
    }
    for (std::size_t index = 0; index < parameters_.size(); ++index)
        parameters_[index] = block_.data() + slots_[index].offset;
    params_.kernelParams = parameters_.data();
}

void NodeArguments::put(std::size_t offset, const void* bytes, std::size_t size) noexcept {
    if (replace(block_.data() + offset, bytes, size)) is_told_ = false;
}

void NodeArguments::put(std::size_t index, const void* bytes) noexcept {
    const ArgumentLayout::Slot& slot = slots_[index];
    put(slot.offset, bytes != nullptr ? bytes : captured_.data() + slot.offset, slot.size);
}

void NodeArguments::put(const LaunchShape* shape) noexcept {
    const auto wanted = dimensions_of((shape != nullptr ? *shape : launch_->shape()).config());
    if (wanted == dimensions_) return;
    dimensions_ = wanted;
    params_.func = nullptr;
    is_told_ = false;
}

void NodeArguments::reset() noexcept {
    put(nullptr);
    put(0, captured_.data(), block_.size());
}

Status NodeArguments::complete(Context& context) noexcept {
    Kernel& kernel = launch_->kernel();
    abi::CUfunction function = nullptr;
    if (const Status status = kernel.function(context, function); !status.ok()) return status;
    const auto [grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes] = dimensions_;
    if (const Status status = kernel.allow_dynamic_shared(context, function, shared_bytes); !status.ok()) return status;
    params_.gridDimX = grid_x;
    params_.gridDimY = grid_y;
    params_.gridDimZ = grid_z;
    params_.blockDimX = block_x;
    params_.blockDimY = block_y;
    params_.blockDimZ = block_z;
    params_.sharedMemBytes = shared_bytes;
    params_.func = function;
    return {};
}

Status NodeArguments::tell(Context& context, abi::CUgraphExec executable) noexcept {
    if (is_told_) return {};
    if (params_.func == nullptr) {
        if (const Status status = complete(context); !status.ok()) return status;
    }
    const Status status =
        context.observe(driver::cu.cuGraphExecKernelNodeSetParams_v2(executable, launch_->node(), &params_));
    is_told_ = status.ok();
    return status;
}

}  // namespace ftcuda::core
