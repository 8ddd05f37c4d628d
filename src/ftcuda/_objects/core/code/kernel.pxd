from libc.stdint cimport uint32_t
from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector

from core.code.module cimport Module
from core.device.device cimport Context
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    ctypedef void* CUfunction
    cppclass CUlaunchConfig:
        pass


cdef extern from "_core/code/image.hpp" namespace "ftcuda::core" nogil:
    enum class ParameterKind:
        unknown
        integer
        float32
        float64
        bytes

    cppclass Parameter:
        uint32_t offset
        uint32_t size
        ParameterKind kind

    cppclass ParameterLayout:
        vector[Parameter] parameters
        bool offsets_known


cdef extern from "_core/code/argument_layout.hpp" namespace "ftcuda::core" nogil:
    cppclass ArgumentSlot "ftcuda::core::ArgumentLayout::Slot":
        uint32_t offset
        uint32_t size
        ParameterKind kind

    cppclass ArgumentLayout:
        vector[ArgumentSlot] slots
        size_t bytes


cdef extern from "_core/code/kernel.hpp" namespace "ftcuda::core" nogil:
    cppclass Kernel:
        @staticmethod
        Status get(Module& module, string name, Context& context, Ref[Kernel]& kernel, string& log) except +
        @staticmethod
        Status wrap(Context& context, CUfunction cu_function, Ref[Kernel]& kernel) except +
        const string& name()
        CUfunction identity()
        bool has_layout()
        const ParameterLayout& layout()
        const ArgumentLayout& arguments()
        Status function(Context& context, CUfunction& cu_function)
        void retain()
        void release()
        Status get_attribute(Context& context, int attribute, int& value)
        Status set_attribute(Context& context, int attribute, int value)
        Status max_active_blocks(Context& context, int block_size, size_t shared_bytes, int& blocks)
        Status max_potential_block_size(Context& context, size_t shared_bytes, int block_limit, int& min_grid,
                                        int& block)
        Status available_dynamic_shared(Context& context, int blocks, int block_size, size_t& bytes)
        Status max_potential_cluster_size(Context& context, const CUlaunchConfig& config, int& size)
        Status max_active_clusters(Context& context, const CUlaunchConfig& config, int& clusters)
