from libcpp cimport bool

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from core.code.kernel cimport Kernel
from core.completion.deferred_release cimport ForeignReference, Retention
from core.completion.host_call cimport CUhostFn
from core.device.device cimport Context
from core.graph.captured_launch cimport Named
from core.graph.graph_definition cimport GraphDefinition
from core.launch.bound_launch cimport BoundArguments
from core.launch.launch cimport LaunchShape
from core.stream.stream cimport Stream
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_driver/abi.hpp" namespace "ftcuda::abi" nogil:
    int CU_GRAPH_COND_TYPE_IF
    int CU_GRAPH_COND_TYPE_WHILE
    int CU_GRAPH_COND_TYPE_SWITCH


cdef extern from "_core/graph/graph_builder.hpp" namespace "ftcuda::core" nogil:
    enum class Kind "ftcuda::core::GraphBuilder::Kind":
        primary
        part
        body

    cppclass GraphBuilder:
        @staticmethod
        Status create(Context& context, unsigned flags, int priority, Ref[GraphBuilder]& builder) except +
        Stream& stream()
        Kind kind()
        bool is_of_capture(const GraphBuilder& other)
        bool is_in_body()
        bool is_building()
        bool is_closed()
        Status begin()
        Status end() except +
        Status definition(Ref[GraphDefinition]& definition)
        Status split(Ref[GraphBuilder]& part) except +
        Status join(GraphBuilder& part)
        Status embed(GraphBuilder& child) except +
        Status launch(const LaunchShape& shape, Ref[ForeignReference] caller, Kernel& kernel,
                      Ref[BoundArguments] arguments, vector[Named] parameters, vector[size_t] scratch) except +
        Status call(CUhostFn function, void* user_data, Retention retention) except +
        Status create_condition(bool has_default, unsigned value, uint64_t& condition) except +
        Status add_conditional(uint64_t condition, int type, vector[Ref[GraphBuilder]]& bodies) except +
        bool close()
        void release()
