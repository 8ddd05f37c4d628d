// One launch: a kernel, a shape, a stream, packed arguments.
#pragma once

#include "../code/kernel.hpp"
#include "arguments.hpp"

namespace ftcuda::core {

// Grid, block and attributes of a launch. Constant after construction.
class LaunchShape {
public:
    struct Dimensions {
        unsigned x = 1, y = 1, z = 1;
    };

    // `grid` counts clusters when `cluster` is given.
    LaunchShape(Dimensions grid, Dimensions block, const Dimensions* cluster, unsigned shared_bytes, bool cooperative,
                bool programmatic_serialization) noexcept;
    LaunchShape(const LaunchShape&) = delete;
    LaunchShape& operator=(const LaunchShape&) = delete;

    const abi::CUlaunchConfig& config() const noexcept { return config_; }
    bool is_cooperative() const noexcept { return cooperative_; }
    bool has_cluster() const noexcept { return cluster_; }
    bool has_attributes_of(const LaunchShape& other) const noexcept;
    bool needs_attributes() const noexcept { return cluster_ || serialization_; }  // beyond what old entry points take

private:
    void add(const abi::CUlaunchAttribute& attribute) noexcept { attributes_[config_.numAttrs++] = attribute; }

    std::array<abi::CUlaunchAttribute, 3> attributes_{};
    abi::CUlaunchConfig config_{};
    bool cooperative_;
    bool cluster_;
    bool serialization_;
};

// Submits the launch. Either everything was submitted or nothing.
Status launch(Stream& stream, const LaunchShape& shape, Kernel& kernel, const Arguments& arguments);

// The same by who is inside the stream already.
Status launch_inside(Stream& stream, const LaunchShape& shape, Kernel& kernel, const Arguments& arguments);

}  // namespace ftcuda::core
