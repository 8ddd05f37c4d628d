from libc.stdint cimport uint64_t
from libcpp cimport bool

from core.code.kernel cimport Kernel
from core.completion.deferred_release cimport ForeignReference, Retention
from core.completion.host_call cimport CUhostFn
from core.graph.graph_definition cimport GraphDefinition, NodeChange
from core.launch.bound_launch cimport BoundArguments
from core.launch.launch cimport LaunchShape
from core.memory.buffer cimport Buffer
from core.stream.event cimport Event
from core.sync.ref cimport Ref


cdef extern from "_core/graph/node_change.hpp" namespace "ftcuda::core" nogil:
    cppclass NodeMemory:
        size_t pointer
        Buffer* buffer
        Ref[ForeignReference] owner

    cppclass EmptyChange(NodeChange):
        EmptyChange()

    cppclass KernelChange(NodeChange):
        KernelChange(const LaunchShape* shape, Ref[ForeignReference] configuration, Kernel* kernel,
                     Ref[BoundArguments] arguments) except +

    cppclass FillChange(NodeChange):
        FillChange()
        bool has_destination, has_value, has_width, has_height, has_pitch
        NodeMemory destination
        unsigned value, element_size
        size_t width, height, pitch

    cppclass CopyChange(NodeChange):
        CopyChange()
        bool has_destination, has_source, has_size
        NodeMemory destination, source
        size_t size

    cppclass EventChange(NodeChange):
        EventChange(int type, Event& event, Ref[ForeignReference] of_caller) except +

    cppclass HostChange(NodeChange):
        HostChange(CUhostFn function, void* user_data, Retention retention, Ref[ForeignReference] of_caller) except +

    cppclass ChildChange(NodeChange):
        ChildChange(GraphDefinition& child) except +

    cppclass ConditionalChange(NodeChange):
        ConditionalChange(uint64_t condition, int kind, size_t bodies)
