from libcpp cimport bool

from core.device.device cimport Context
from core.graph.graph_definition cimport GraphDefinition
from core.stream.stream cimport Stream
from core.sync.reason cimport Status
from core.sync.ref cimport Ref


cdef extern from "_core/graph/graph_builder.hpp" namespace "ftcuda::core" nogil:
    cppclass GraphBuilder:
        @staticmethod
        Status create(Context& context, unsigned flags, int priority, Ref[GraphBuilder]& builder) except +
        Stream& stream()
        bool is_primary()
        bool is_of_capture(const GraphBuilder& other)
        bool is_building()
        bool is_closed()
        Status begin()
        Status end() except +
        Status definition(Ref[GraphDefinition]& definition)
        Status split(Ref[GraphBuilder]& part) except +
        Status join(GraphBuilder& part)
        Status embed(GraphBuilder& child) except +
        bool close()
        void release()
