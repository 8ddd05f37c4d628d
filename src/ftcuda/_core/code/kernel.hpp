// A kernel: its name, its parameter layout, and the function it is on each device.
#pragma once

#include "argument_layout.hpp"
#include "module.hpp"

namespace ftcuda::core {

class Kernel final : public Shared {
public:
    // `name` as the image has it (mangled). Loads the module on `context`'s device. `log`: the driver's words on
    // failure.
    static Status get(Module& module, std::string name, Context& context, Ref<Kernel>& kernel, std::string& log);
    // A function that somebody else loaded on `context`'s device.
    static Status wrap(Context& context, abi::CUfunction cu_function, Ref<Kernel>& kernel);

    const std::string& name() const noexcept { return name_; }

    // The function on the device where the module was loaded first, or the foreign one: the same for all kernels of one
    // function.
    abi::CUfunction identity() const noexcept { return identity_; }

    // False when neither the image nor the driver could tell the parameters (fatbins before CUDA 12.4).
    bool has_layout() const noexcept { return has_layout_; }
    const ParameterLayout& layout() const noexcept { return layout_; }
    const ArgumentLayout& arguments() const noexcept { return arguments_; }

    // The function on `context`'s device, loaded there if it is the first need.
    Status function(Context& context, abi::CUfunction& cu_function) noexcept {
        cu_function = functions_[static_cast<std::size_t>(context.device().ordinal())].load(std::memory_order_acquire);
        return cu_function != nullptr ? Status() : find_function(context, cu_function);
    }

    // Allows launches with up to `bytes` of dynamic shared memory, which beyond 48 KiB the driver wants to be told.
    Status allow_dynamic_shared(Context& context, abi::CUfunction cu_function, std::size_t bytes) noexcept {
        const std::atomic<std::uint32_t>& allowed =
            shared_allowed_[static_cast<std::size_t>(context.device().ordinal())];
        return bytes <= allowed.load(std::memory_order_relaxed) ? Status()
                                                                : raise_dynamic_shared(context, cu_function, bytes);
    }

    // With the context current for the duration of the call. See CUfunction_attribute. The allowance of dynamic shared
    // memory is only ever raised: a launch in another thread may rely on it.
    Status get_attribute(Context& context, int attribute, int& value) noexcept;
    Status set_attribute(Context& context, int attribute, int value) noexcept;

    Status max_active_blocks(Context& context, int block_size, std::size_t shared_bytes, int& blocks) noexcept;
    Status max_potential_block_size(Context& context, std::size_t shared_bytes, int block_limit, int& min_grid,
                                    int& block) noexcept;
    Status available_dynamic_shared(Context& context, int blocks, int block_size, std::size_t& bytes) noexcept;
    Status max_potential_cluster_size(Context& context, const abi::CUlaunchConfig& config, int& size) noexcept;
    Status max_active_clusters(Context& context, const abi::CUlaunchConfig& config, int& clusters) noexcept;

private:
    // CUDA programming guide, table of technical specifications.
    static constexpr std::uint32_t shared_without_asking = 48 * 1024;

    Kernel(std::string name, Ref<Module> module) : name_(std::move(name)), module_(std::move(module)) {}
    ~Kernel() override = default;

    // question(function), with the context current and what it answers observed.
    template <class Question>
    Status ask(Context& context, Question question) noexcept;
    Status find_function(Context& context, abi::CUfunction& cu_function) noexcept;
    Status raise_dynamic_shared(Context& context, abi::CUfunction cu_function, std::size_t bytes) noexcept;
    Status ask_for_layout(Context& context, abi::CUfunction cu_function);

    // Constant after construction.
    const std::string name_;
    const Ref<Module> module_;  // null for a function that somebody else loaded
    ParameterLayout layout_;
    ArgumentLayout arguments_;
    bool has_layout_ = false;
    abi::CUfunction identity_ = nullptr;

    // Synchronise themselves: each function is published once with release and read with acquire. The allowance only
    // grows, and is stored under allowance_mutex after the driver was told, so that whoever reads it may rely on it.
    // Relaxed: the driver call it stands for has its own locking.
    std::array<std::atomic<abi::CUfunction>, Device::limit> functions_{};
    std::array<std::atomic<std::uint32_t>, Device::limit> shared_allowed_;
};

}  // namespace ftcuda::core
