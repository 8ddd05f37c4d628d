cimport core.launch.bound_launch as core
from core.sync.ref cimport Ref
from ftcuda._objects.code.kernel_handle cimport KernelHandle
from ftcuda._objects.launch.launch_config cimport LaunchConfig
from ftcuda._objects.stream.stream cimport Stream


cdef class BoundLaunch:
    cdef core.BoundLaunch* _bound          # constant
    cdef readonly KernelHandle kernel
    cdef readonly LaunchConfig config
    cdef object __weakref__


cdef Ref[core.BoundArguments] bind_all(KernelHandle kernel, tuple values, Stream stream) except *
cdef BoundLaunch bind(KernelHandle kernel, LaunchConfig config, tuple values)
