// What the simulator declares of the driver's ABI beyond ftcuda's own part, for other programs.
// `tests/driver/abi_check.cpp` compares it with the real headers too.
#pragma once

#include "../../ftcuda/_driver/abi.hpp"

namespace ftcuda::abi {

using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUarray = struct CUarray_st*;

enum : CUresult {
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
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

enum : unsigned { CU_EVENT_RECORD_EXTERNAL = 1, CU_EVENT_WAIT_EXTERNAL = 1 };

enum : int {  // CUgraphNodeType
    CU_GRAPH_NODE_TYPE_KERNEL = 0,
    CU_GRAPH_NODE_TYPE_MEMCPY = 1,
    CU_GRAPH_NODE_TYPE_MEMSET = 2,
    CU_GRAPH_NODE_TYPE_HOST = 3,
    CU_GRAPH_NODE_TYPE_GRAPH = 4,
    CU_GRAPH_NODE_TYPE_EMPTY = 5,
    CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
    CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
};

struct CUDA_KERNEL_NODE_PARAMS_v1 {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void** kernelParams;
    void** extra;
};

struct CUDA_KERNEL_NODE_PARAMS_v2 {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void** kernelParams;
    void** extra;
    CUkernel kern;
    CUcontext ctx;
};

struct CUDA_MEMCPY3D {  // _v2
    std::size_t srcXInBytes, srcY, srcZ, srcLOD;
    int srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void* reserved0;
    std::size_t srcPitch, srcHeight;
    std::size_t dstXInBytes, dstY, dstZ, dstLOD;
    int dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void* reserved1;
    std::size_t dstPitch, dstHeight;
    std::size_t WidthInBytes, Height, Depth;
};

struct CUDA_MEMSET_NODE_PARAMS {  // _v1
    CUdeviceptr dst;
    std::size_t pitch;
    unsigned value;
    unsigned elementSize;
    std::size_t width;  // in elements
    std::size_t height;
};

struct CUDA_HOST_NODE_PARAMS {  // _v1
    CUhostFn fn;
    void* userData;
};

struct CUDA_MEMSET_NODE_PARAMS_v2 {
    CUdeviceptr dst;
    std::size_t pitch;
    unsigned value;
    unsigned elementSize;
    std::size_t width;
    std::size_t height;
    CUcontext ctx;
};

struct CUDA_MEMCPY_NODE_PARAMS {
    int flags;
    int reserved;
    CUcontext copyCtx;
    CUDA_MEMCPY3D copyParams;
};

using CUgraphConditionalHandle = std::uint64_t;

enum : unsigned { CU_GRAPH_COND_ASSIGN_DEFAULT = 1 };

enum : int {  // CUgraphConditionalNodeType
    CU_GRAPH_COND_TYPE_IF = 0,
    CU_GRAPH_COND_TYPE_WHILE = 1,
    CU_GRAPH_COND_TYPE_SWITCH = 2,
};

struct CUDA_CONDITIONAL_NODE_PARAMS {
    CUgraphConditionalHandle handle;
    int type;
    unsigned size;
    CUgraph* phGraph_out;
    CUcontext ctx;
};

struct CUgraphNodeParams {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS_v2 kernel;
        CUDA_MEMCPY_NODE_PARAMS memcpy;
        CUDA_MEMSET_NODE_PARAMS_v2 memset;
        CUDA_HOST_NODE_PARAMS host;
        struct {
            CUgraph graph;
        } graph;
        struct {
            CUevent event;
        } eventWait;
        struct {
            CUevent event;
        } eventRecord;
        CUDA_CONDITIONAL_NODE_PARAMS conditional;
    };
    long long reserved2;
};

enum : int {  // CUgraphInstantiateResult
    CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
    CUDA_GRAPH_INSTANTIATE_ERROR = 1,
    CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
    CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
    CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
    CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5,
};

struct CUDA_GRAPH_INSTANTIATE_PARAMS {
    std::uint64_t flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    int result_out;
};

enum : int {  // CUgraphExecUpdateResult
    CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
    CU_GRAPH_EXEC_UPDATE_ERROR = 1,
    CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
    CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
    CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4,
    CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
    CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
    CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
    CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8,
};

struct CUgraphEdgeData {
    unsigned char from_port, to_port, type;
    unsigned char reserved[5];
};

}  // namespace ftcuda::abi
