from libcpp.string cimport string
from libcpp.vector cimport vector

from core.code.kernel cimport Kernel
from core.sync.ref cimport Ref


cdef extern from "_core/graph/captured_launch.hpp" namespace "ftcuda::core" nogil:
    cppclass Named "ftcuda::core::CapturedLaunch::Parameter":
        string name
        size_t index

    size_t SHAPE "ftcuda::core::CapturedLaunch::Parameter::shape"

    cppclass CapturedLaunch:
        Kernel& kernel()
        const vector[Named]& parameters()
