// A launch within a graph whose node is told of other arguments: of parameters, which each launch of the graph may
// replace by name, as its shape too; of scratch memory, which each executable has for itself.
#pragma once

#include "../launch/bound_launch.hpp"

#include <string>

namespace ftcuda::core {

// Constant once the capture has it.
class CapturedLaunch final : public Shared {
public:
    struct Parameter {
        static constexpr std::size_t shape = ~std::size_t{0};

        std::string name;
        std::size_t index;  // among the kernel's arguments; or `shape`
    };

    // `shape` is kept by `caller`. `scratch`: which arguments are buffers that other executables have others for.
    CapturedLaunch(Kernel& kernel, const LaunchShape& shape, Ref<deferred_release::ForeignReference> caller,
                   Ref<BoundArguments> arguments, std::vector<Parameter> parameters, std::vector<std::size_t> scratch)
        : kernel_(kernel), shape_(shape), caller_(std::move(caller)), arguments_(std::move(arguments)),
          parameters_(std::move(parameters)), scratch_(std::move(scratch)) {}

    // Once, by who captures it.
    void set_node(abi::CUgraphNode node) noexcept { node_ = node; }

    abi::CUgraphNode node() const noexcept { return node_; }
    Kernel& kernel() const noexcept { return *kernel_; }
    // As they were captured.
    const LaunchShape& shape() const noexcept { return shape_; }
    BoundArguments& arguments() const noexcept { return *arguments_; }
    const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
    const std::vector<std::size_t>& scratch() const noexcept { return scratch_; }

private:
    ~CapturedLaunch() override = default;

    abi::CUgraphNode node_ = nullptr;
    const Ref<Kernel> kernel_;
    const LaunchShape& shape_;
    const Ref<deferred_release::ForeignReference> caller_;
    const Ref<BoundArguments> arguments_;
    const std::vector<Parameter> parameters_;
    const std::vector<std::size_t> scratch_;
};

}  // namespace ftcuda::core
