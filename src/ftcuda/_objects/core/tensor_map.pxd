from libc.stdint cimport uint32_t, uint64_t

from core.device cimport Context
from core.lifetime cimport Ref
from core.status cimport Status


cdef extern from "<array>" nogil:
    cppclass Extents "std::array<std::uint64_t, 5>":
        uint64_t& operator[](size_t)

    cppclass Steps "std::array<std::uint32_t, 5>":
        Steps()
        uint32_t& operator[](size_t)

    cppclass Corner "std::array<int, 5>":
        int& operator[](size_t)


cdef extern from "_core/tensor_map.hpp" namespace "ftcuda::core" nogil:
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

    cppclass TensorMap:
        @staticmethod
        Status tiled(Context& context, const Tensor& tensor, const Steps& box, Ref[TensorMap]& map) except +
        @staticmethod
        Status im2col(Context& context, const Tensor& tensor, const Im2col& columns, Ref[TensorMap]& map) except +
        Status at(Context& context, uint64_t address, Ref[TensorMap]& map) except +
        const void* bytes()
        void release()
