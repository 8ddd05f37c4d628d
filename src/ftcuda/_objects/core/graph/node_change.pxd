from libc.stdint cimport uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from core.code.kernel cimport Kernel
from core.completion.deferred_release cimport ForeignReference, Retention
from core.completion.host_call cimport CUhostFn
from core.graph.graph_definition cimport GraphDefinition, NodeChange
from core.graph.graph_node cimport Kept
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
        void expect(const Kept& kept)

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
        ChildChange(GraphDefinition& child, bool lasts) except +

    enum class AllocationKind "ftcuda::core::AllocationChange::Kind":
        device
        host
        managed

    cppclass AllocationChange(NodeChange):
        AllocationChange(size_t size, AllocationKind kind, vector[int] reached_by) except +

    cppclass FreeChange(NodeChange):
        FreeChange(size_t pointer)

    cppclass ConditionalChange(NodeChange):
        ConditionalChange(uint64_t condition, int kind, size_t bodies)
