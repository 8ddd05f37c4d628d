from core.graph.graph_definition cimport GraphDefinition
from core.sync.ref cimport Ref
from ftcuda._objects.stream.stream cimport StreamSource


cdef class GraphSource(StreamSource):
    cdef int take_definition(self, Ref[GraphDefinition]& definition, str verb) except -1
