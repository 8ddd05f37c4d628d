#include "profile.hpp"

#include "foreign_abi.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ftcuda::sim {

using namespace abi;

namespace {

// PTX versions by CUDA release: PTX ISA, release history. Ends of the attributes: cuda.h of 11.8, 12.9 and 13.5, a 13.0
// driver asked; those of 11.2, 12.0 and 12.4 lie in between.
constexpr Profile profiles[] = {
    {"11.2", 11020, 72, 120, true, false, true, false},  {"11.8", 11080, 78, 124, true, false, true, false},
    {"12.0", 12000, 80, 128, true, false, true, false},  {"12.4", 12040, 84, 135, true, false, true, false},
    {"12.9", 12090, 88, 143, true, false, true, false},  {"13.0", 13000, 90, 148, true, true, true, false},
    {"13.5", 13050, 95, 161, true, true, true, false},   {"tcc", 12090, 88, 143, false, false, true, true},
    {"wddm", 12090, 88, 143, true, false, false, false},
};
constexpr const char* default_profile = "13.5";

const Profile* find_profile() noexcept {
    const char* wanted = std::getenv("FTCUDA_SIM_PROFILE");
    if (wanted == nullptr || *wanted == '\0') wanted = default_profile;
    for (const Profile& candidate : profiles) {
        if (std::strcmp(candidate.name, wanted) == 0) return &candidate;
    }
    std::fprintf(stderr, "ftcuda simulated driver: FTCUDA_SIM_PROFILE=%s is not one of:", wanted);
    for (const Profile& candidate : profiles) std::fprintf(stderr, " %s", candidate.name);
    std::fprintf(stderr, "\n");
    return nullptr;
}

std::uint64_t number(const char* name, std::uint64_t otherwise) noexcept {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') return otherwise;
    return std::strtoull(text, nullptr, 10);
}

}  // namespace

const Profile* profile() noexcept {
    static const Profile* const chosen = find_profile();
    return chosen;
}

int device_count() noexcept {
    static const int count = static_cast<int>(number("FTCUDA_SIM_DEVICES", 1));
    return count;
}

bool valid_device(int device) noexcept { return device >= 0 && device < device_count(); }

int compute_capability() noexcept {
    static const int capability = static_cast<int>(number("FTCUDA_SIM_CC", 90));
    return capability;
}

std::uint64_t device_memory() noexcept {
    static const std::uint64_t bytes = number("FTCUDA_SIM_MEMORY", std::uint64_t{4} << 30);
    return bytes;
}

bool device_attribute(int attribute, int& value) noexcept {
    const Profile& simulated = *profile();
    if (attribute <= 0 || attribute >= simulated.attribute_end) return false;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: value = 1024; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: value = 64; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: value = 2147483647; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: value = 65535; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: value = 48 * 1024; return true;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: value = 64 * 1024; return true;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: value = 32; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: value = 65536; return true;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: value = 1000000; return true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: value = 8; return true;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_TCC_DRIVER: value = simulated.tcc; return true;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: value = 1000000; return true;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: value = 256; return true;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: value = 4 << 20; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: value = 2048; return true;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: value = 2; return true;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: value = compute_capability() / 10; return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: value = compute_capability() % 10; return true;
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: value = 100 * 1024; return true;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: value = simulated.concurrent_managed; return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: value = compute_capability() >= 90; return true;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS: value = simulated.driver_version >= 11070; return true;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: value = 1; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: value = 99 * 1024; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: value = 32; return true;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: value = 1024; return true;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: value = simulated.memory_pools; return true;
    case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED: value = simulated.host_pools; return true;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
        value =
            simulated.driver_version >= 12000 && compute_capability() >= 90;  // where cuTensorMapEncodeTiled is of use
        return true;
    default: value = 0; return true;
    }
}

}  // namespace ftcuda::sim
