cimport core.launch.bound_launch as core
from ftcuda._objects.code.kernel cimport Kernel
from ftcuda._objects.code.launch_config cimport LaunchConfig


cdef class BoundLaunch:
    cdef core.BoundLaunch* _bound          # constant
    cdef readonly Kernel kernel
    cdef readonly LaunchConfig config
    cdef object __weakref__
