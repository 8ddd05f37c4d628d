from core.launch.launch cimport LaunchShape
from core.launch.tensor_map cimport TensorMap


cdef extern from "_core/graph/replacement.hpp" namespace "ftcuda::core" nogil:
    cppclass Place "ftcuda::core::Replacement::Place":
        size_t launch
        size_t index

    cppclass Replacement:
        const Place* places
        size_t count
        const void* bytes
        TensorMap* map
        const LaunchShape* shape
