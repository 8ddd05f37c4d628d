from libc.stdint cimport uint32_t, uint64_t

from core.device.device cimport Context
from core.memory.buffer cimport Buffer
from core.completion.deferred_release cimport ForeignReference
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "<array>" nogil:
    cppclass Extents "std::array<std::uint64_t, 5>":
        uint64_t& operator[](size_t)

    cppclass Steps "std::array<std::uint32_t, 5>":
        Steps()
        uint32_t& operator[](size_t)

    cppclass Corner "std::array<int, 5>":
        int& operator[](size_t)


cdef extern from "_core/launch/tensor_map.hpp" namespace "ftcuda::core" nogil:
    cppclass Tensor:
        Tensor()
        int type
        unsigned rank
        uint64_t address
        Extents extents
        Extents strides
        Steps element_strides
        int interleave, swizzle, promotion, fill

    cppclass Im2col:
        Im2col()
        Corner lower
        Corner upper
        uint32_t channels, pixels

    cppclass MappedMemory:
        MappedMemory()
        Ref[ForeignReference] tensor
        Buffer* buffer

    cppclass TensorMapState:
        const void* bytes()
        void* tensor()
        Buffer* buffer()

    cppclass TensorMap:
        @staticmethod
        Status tiled(Context& context, const Tensor& tensor, const Steps& box, MappedMemory memory,
                     Ref[TensorMap]& map) except +
        @staticmethod
        Status im2col(Context& context, const Tensor& tensor, const Im2col& columns, MappedMemory memory,
                      Ref[TensorMap]& map) except +
        Status replace_address(Context& context, uint64_t address, MappedMemory memory) except +
        Ref[TensorMapState] state() except +
        void retain()
        void release()
