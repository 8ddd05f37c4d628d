from libcpp cimport bool

from core.code.kernel cimport CUlaunchConfig, Kernel
from core.launch.arguments cimport Arguments
from core.stream.stream cimport Stream
from core.sync.reason cimport Status


cdef extern from "_core/launch/launch.hpp" namespace "ftcuda::core" nogil:
    cppclass Dimensions "ftcuda::core::LaunchShape::Dimensions":
        unsigned x
        unsigned y
        unsigned z

    cppclass LaunchShape:
        LaunchShape(Dimensions grid, Dimensions block, const Dimensions* cluster, unsigned shared_bytes,
                    bool cooperative, bool programmatic_serialization)
        const CUlaunchConfig& config()

    Status launch(Stream& stream, const LaunchShape& shape, Kernel& kernel, const Arguments& arguments) except +
