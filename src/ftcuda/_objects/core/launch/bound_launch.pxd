from libcpp cimport bool

from core.code.kernel cimport ArgumentLayout, Kernel
from core.launch.arguments cimport Argument
from core.launch.launch cimport LaunchShape
from core.completion.deferred_release cimport ForeignReference
from core.stream.stream cimport Stream
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/launch/bound_launch.hpp" namespace "ftcuda::core" nogil:
    cppclass BoundArgument(Argument):
        BoundArgument()
        BoundArgument(const Argument& argument, Ref[ForeignReference] value)
        Ref[ForeignReference] value

    cppclass BoundArguments:
        BoundArguments(const ArgumentLayout& layout) except +
        void put(size_t index, const char* block, BoundArgument argument) except +
        size_t count()
        void* value(size_t index)
        bool may_release()

    cppclass BoundLaunch:
        BoundLaunch(Kernel& kernel, const LaunchShape& shape, Ref[BoundArguments] arguments) except +
        void set(size_t index, const char* block, BoundArgument argument) except +
        Status launch(Stream& stream, Ref[BoundArguments]& used) except +
        Ref[BoundArguments] arguments() except +
        void release()
