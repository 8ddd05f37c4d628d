cimport core.graph.graph_builder as core
from core.graph.graph_definition cimport GraphDefinition
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport DeviceHandle
from ftcuda._objects.graph.graph_source cimport GraphSource


cdef class GraphBuilder(GraphSource):
    cdef core.GraphBuilder* _builder   # constant; closed by the last of close() and the end of this object

    cdef int check_primary(self, str verb) except -1
    cdef tuple add_conditional(self, object condition, int kind, size_t count, str verb)

    @staticmethod
    cdef GraphBuilder create(DeviceHandle device, int priority)
