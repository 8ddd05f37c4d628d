from libcpp cimport bool

from core.launch.tensor_map cimport TensorMap
from core.memory.buffer cimport Buffer
from core.memory.operands cimport Operands


cdef extern from "_core/launch/arguments.hpp" namespace "ftcuda::core" nogil:
    cppclass Argument:
        Argument()
        Buffer* buffer
        TensorMap* map
        int device
        bool foreign

    int ANY_DEVICE "ftcuda::core::Argument::any_device"

    cppclass Mapped "ftcuda::core::Arguments::Mapped":
        size_t index
        TensorMap* map

    cppclass Arguments:
        Arguments()
        void** parameters
        Operands operands
        const Mapped* maps
        size_t map_count
