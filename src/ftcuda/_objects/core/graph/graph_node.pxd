from core.code.kernel cimport CUfunction
from core.device.device cimport CUevent
from core.sync.ref cimport Ref, Shared


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    ctypedef void* CUgraphNode
    int CU_GRAPH_NODE_TYPE_KERNEL
    int CU_GRAPH_NODE_TYPE_MEMCPY
    int CU_GRAPH_NODE_TYPE_MEMSET
    int CU_GRAPH_NODE_TYPE_HOST
    int CU_GRAPH_NODE_TYPE_GRAPH
    int CU_GRAPH_NODE_TYPE_EMPTY
    int CU_GRAPH_NODE_TYPE_WAIT_EVENT
    int CU_GRAPH_NODE_TYPE_EVENT_RECORD
    int CU_GRAPH_NODE_TYPE_CONDITIONAL
    int CU_GRAPH_NODE_TYPE_MEM_ALLOC
    int CU_GRAPH_NODE_TYPE_MEM_FREE
    int CU_MEM_ALLOCATION_TYPE_MANAGED
    int CU_MEM_LOCATION_TYPE_DEVICE

    ctypedef struct CUDA_KERNEL_NODE_PARAMS_v2:
        CUfunction func
        unsigned gridDimX, gridDimY, gridDimZ
        unsigned blockDimX, blockDimY, blockDimZ
        unsigned sharedMemBytes

    ctypedef struct CUDA_MEMCPY3D:
        int srcMemoryType
        const void* srcHost
        size_t srcDevice
        int dstMemoryType
        void* dstHost
        size_t dstDevice
        size_t WidthInBytes

    ctypedef struct CUDA_MEMCPY_NODE_PARAMS:
        CUDA_MEMCPY3D copyParams

    ctypedef struct CUDA_MEMSET_NODE_PARAMS_v2:
        size_t dst
        size_t pitch
        unsigned value
        unsigned elementSize
        size_t width
        size_t height

    ctypedef struct CUmemLocation:
        int type
        int id

    ctypedef struct CUmemPoolProps:
        int allocType
        CUmemLocation location

    ctypedef struct CUmemAccessDesc:
        CUmemLocation location

    ctypedef struct CUDA_MEM_ALLOC_NODE_PARAMS:
        CUmemPoolProps poolProps
        const CUmemAccessDesc* accessDescs
        size_t accessDescCount
        size_t bytesize
        size_t dptr

    ctypedef struct FreeParams "decltype(ftcuda::abi::CUgraphNodeParams::free)":
        size_t dptr

    ctypedef struct CUDA_CONDITIONAL_NODE_PARAMS:
        unsigned long long handle
        int type
        unsigned size

    ctypedef struct CUgraphNodeParams:
        CUDA_KERNEL_NODE_PARAMS_v2 kernel
        CUDA_MEMCPY_NODE_PARAMS memcpy
        CUDA_MEMSET_NODE_PARAMS_v2 memset
        CUDA_CONDITIONAL_NODE_PARAMS conditional
        CUDA_MEM_ALLOC_NODE_PARAMS alloc
        FreeParams free

    int CU_MEMORYTYPE_HOST


cdef extern from "_core/graph/graph_node.hpp" namespace "ftcuda::core" nogil:
    cppclass Kept "ftcuda::core::GraphNode::Kept":
        Ref[Shared]& operator[](size_t index)

    cppclass GraphNode:
        int type()
        CUgraphNode cu_node()
        void retain()
        void release()
