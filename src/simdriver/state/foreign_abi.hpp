// What the simulator declares of the driver's ABI beyond ftcuda's own part, for other programs.
// `tests/driver/abi_check.cpp` compares it with the real headers too.
#pragma once

#include "../../ftcuda/_driver/abi.hpp"

namespace ftcuda::abi {

using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;

enum : CUresult {
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
};

inline constexpr CUdevice CU_DEVICE_INVALID = -2;

enum : std::uint64_t { CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2 };

enum : unsigned {
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    CU_MEMHOSTREGISTER_IOMEMORY = 4,
    CU_MEMHOSTREGISTER_READ_ONLY = 8,
};

enum : int {  // CUpointer_attribute
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_MAPPED = 13,
    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
    CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
};

enum : int { CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE = 3 };

enum : int {  // CUdevice_attribute
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
    CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
    CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
    CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED = 127,
};

enum : int {  // CUlibraryOption
    CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
    CU_LIBRARY_BINARY_IS_PRESERVED = 1,
};

}  // namespace ftcuda::abi
