cimport core.launch.launch as core


cdef class LaunchConfig:
    cdef core.LaunchShape* _shape          # constant
    cdef readonly tuple grid
    cdef readonly tuple block
    cdef readonly tuple cluster
    cdef readonly Py_ssize_t shmem_size
    cdef readonly bint is_cooperative
    cdef readonly bint programmatic_stream_serialization
    cdef object __weakref__
