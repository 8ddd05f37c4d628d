// The clusters of a launch: blocks that run at once and reach each other's shared memory.
#pragma once

#include "../state/driver_state.hpp"
#include "../state/operation.hpp"

namespace ftcuda::sim {

// What a launch asks for in its attributes, or null.
const CUlaunchAttribute* cluster_attribute(const CUlaunchConfig& config) noexcept;

// The clusters of a launch that asks for `wanted`, which may be null, or the driver's error.
CUresult find_cluster(const Function& function, const std::array<unsigned, 3>& grid, int block_size,
                      std::size_t shared_bytes, const CUlaunchAttribute* wanted, ClusterShape& cluster);

}  // namespace ftcuda::sim
