#include "attributes.hpp"

#include "../state/profile.hpp"

namespace ftcuda::sim {

namespace {

// Where parameters begin in the constant bank: measured on cubins of CUDA 11.8 to 13.5. Alignment applies to bank
// addresses, so an offset in the parameter block depends on it.
std::size_t bank_base() noexcept {
    if (compute_capability() >= 100) return 0x380;
    return compute_capability() >= 90 ? 0x210 : 0x160;
}

// The attributes that nobody sets. False for one that the driver does not know.
bool fixed_attribute(const ptx::Entry& entry, int attribute, int& value) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: value = static_cast<int>(entry.max_threads); return true;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: value = static_cast<int>(entry.static_shared_bytes); return true;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: value = 0; return true;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: value = static_cast<int>(entry.local_bytes); return true;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: value = static_cast<int>(entry.registers); return true;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: value = compute_capability(); return true;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: value = 0; return true;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: value = entry.explicit_cluster; return true;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: value = 0; return true;
    default: return false;
    }
}

bool is_of_clusters(int attribute) {
    return attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET &&
           attribute <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
}

}  // namespace

CUresult get_attribute(const ptx::Entry& entry, const Attributes& attributes, int attribute, int& value) {
    if (is_of_clusters(attribute) && profile()->driver_version < 11080) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
        const auto& required = entry.required_cluster[0] != 0 ? entry.required_cluster : *attributes.cluster;
        value =
            static_cast<int>(required[static_cast<std::size_t>(attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)]);
        return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        value = *attributes.non_portable_cluster;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: value = *attributes.max_dynamic_shared; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: value = *attributes.carveout; return CUDA_SUCCESS;
    default: return fixed_attribute(entry, attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult set_attribute(const ptx::Entry& entry, Attributes& attributes, int attribute, int value) {
    if (is_of_clusters(attribute) && profile()->driver_version < 11080) return CUDA_ERROR_INVALID_VALUE;
    int opt_in = 0;
    device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, opt_in);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value + static_cast<int>(entry.static_shared_bytes) > opt_in) return CUDA_ERROR_INVALID_VALUE;
        attributes.max_dynamic_shared = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
        attributes.carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        attributes.non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (entry.required_cluster[0] != 0) return CUDA_ERROR_NOT_PERMITTED;  // cuda.h: it was set at compile time
        if (value < 0) return CUDA_ERROR_INVALID_VALUE;
        if (!attributes.cluster) attributes.cluster.emplace();
        (*attributes.cluster)[static_cast<std::size_t>(attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)] =
            static_cast<unsigned>(value);
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult parameter_info(const ptx::Entry& entry, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    const std::vector<ptx::Parameter>& parameters = entry.parameters;
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    std::size_t at = bank_base();
    for (std::size_t before = 0; before <= index; ++before) {
        const std::size_t alignment = parameters[before].alignment;
        at = (at + alignment - 1) / alignment * alignment;
        if (before != index) at += parameters[before].size;
    }
    if (offset != nullptr) *offset = at - bank_base();
    if (bytes != nullptr) *bytes = parameters[index].size;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
