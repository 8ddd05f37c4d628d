from libcpp cimport bool
from libcpp.vector cimport vector

from core.code.kernel cimport Kernel
from core.launch.launch cimport LaunchShape
from core.launch.tensor_map cimport TensorMap
from core.memory.buffer cimport Buffer
from core.completion.deferred_release cimport ForeignReference
from core.stream.stream cimport Stream
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/launch/bound_launch.hpp" namespace "ftcuda::core" nogil:
    cppclass BoundArgument:
        BoundArgument()
        Ref[ForeignReference] value
        Buffer* buffer
        bool foreign
        int device
        Ref[TensorMap] map

    cppclass BoundArguments:
        BoundArguments(vector[size_t] offsets, size_t bytes) except +
        void put(size_t index, const void* source, size_t bytes, BoundArgument argument) except +
        size_t count()
        void* value(size_t index)
        bool may_release()

    cppclass BoundLaunch:
        BoundLaunch(Kernel& kernel, const LaunchShape& shape, Ref[BoundArguments] arguments) except +
        void set(size_t index, const void* source, size_t bytes, BoundArgument argument) except +
        Status launch(Stream& stream, Ref[BoundArguments]& used) except +
        Ref[BoundArguments] arguments() except +
        void release()
