// The clusters of a launch, and exports: how many fit. Errors are those of an H100 with driver 580.
#include "cluster.hpp"

#include "../calls/gate.hpp"
#include "../state/profile.hpp"
#include "library.hpp"
#include "module.hpp"
#include "occupancy.hpp"

#include <algorithm>

namespace ftcuda::sim {

namespace {

constexpr unsigned portable_size = 8;  // CUDA C++ Programming Guide, "Thread Block Clusters"
constexpr unsigned largest_size = 16;  // of those that are not portable

unsigned size_limit(const Function& function) {
    return *function.effective().non_portable_cluster ? largest_size : portable_size;
}

// On the whole device.
unsigned blocks_at_once(const Function& function, int block_size, std::size_t shared_bytes) {
    if (static_cast<int>(shared_bytes) > *function.effective().max_dynamic_shared) return 0;
    int multiprocessors = 0;
    device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiprocessors);
    return static_cast<unsigned>(std::max(blocks_that_fit(function, block_size, shared_bytes), 0) * multiprocessors);
}

bool has_clusters() {
    int value = 0;
    return device_attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, value) && value != 0;
}

// The largest cluster and how many of those that are wanted fit.
CUresult occupancy(CUfunction handle, const CUlaunchConfig* config, int* largest, int* active) {
    const Guard lock(driver_state().mutex);
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!has_clusters()) return CUDA_ERROR_NOT_SUPPORTED;
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    const std::uint64_t threads = std::uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
    const int block_size = static_cast<int>(std::min<std::uint64_t>(threads, 1u << 20));
    ClusterShape cluster;
    const CUresult result = find_cluster(*function, {config->gridDimX, config->gridDimY, config->gridDimZ}, block_size,
                                         config->sharedMemBytes, cluster_attribute(*config), cluster);
    const unsigned blocks = blocks_at_once(*function, block_size, config->sharedMemBytes);
    if (result != CUDA_SUCCESS) return result;
    if (largest != nullptr) *largest = static_cast<int>(std::min(size_limit(*function), blocks));
    if (active != nullptr) *active = cluster.is_explicit ? static_cast<int>(blocks / cluster.size()) : 0;
    return CUDA_SUCCESS;
}

}  // namespace

const CUlaunchAttribute* cluster_attribute(const CUlaunchConfig& config) noexcept {
    for (unsigned index = 0; index < config.numAttrs; ++index) {
        if (config.attrs[index].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return &config.attrs[index];
    }
    return nullptr;
}

CUresult find_cluster(const Function& function, const std::array<unsigned, 3>& grid, int block_size,
                      std::size_t shared_bytes, const CUlaunchAttribute* wanted, ClusterShape& cluster) {
    const ptx::Entry& entry = entry_of(function);
    std::array<unsigned, 3> required = entry.required_cluster;
    if (required[0] == 0) required = *function.effective().cluster;
    if (wanted != nullptr) {
        const auto& extent = wanted->value.clusterDim;
        cluster = {{extent.x, extent.y, extent.z}, true};
        if (required[0] != 0 && cluster.blocks != required) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    } else if (required[0] != 0) {
        cluster = {required, true};
    } else if (entry.explicit_cluster) {
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    } else {
        return CUDA_SUCCESS;
    }
    std::uint64_t size = 1;
    for (unsigned axis = 0; axis < 3; ++axis) {
        const unsigned extent = cluster.blocks[axis];
        if (extent == 0 || extent > largest_size || grid[axis] % extent != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        size *= extent;
    }
    if (size > 1 && !has_clusters()) return CUDA_ERROR_NOT_SUPPORTED;
    if (size > size_limit(function) || (entry.max_cluster != 0 && size > entry.max_cluster))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const unsigned blocks = blocks_at_once(function, block_size, shared_bytes);
    if (blocks != 0 && size > blocks) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle,
                                                              const CUlaunchConfig* config) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxPotentialClusterSize);
    return occupancy(handle, config, size, nullptr);
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                                        const CUlaunchConfig* config) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxActiveClusters);
    return occupancy(handle, config, nullptr, clusters);
}

}  // namespace ftcuda::sim
