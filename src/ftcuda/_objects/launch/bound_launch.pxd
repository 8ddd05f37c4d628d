cimport core.bound_launch as core
from ftcuda._objects.kernel cimport Kernel
from ftcuda._objects.launch cimport LaunchConfig


cdef class BoundLaunch:
    cdef core.BoundLaunch* _bound          # constant
    cdef readonly Kernel kernel
    cdef readonly LaunchConfig config
    cdef object __weakref__
