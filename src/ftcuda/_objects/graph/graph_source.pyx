"""What a graph is made of, or updated from."""

from core.graph.graph_definition cimport GraphDefinition
from core.sync.ref cimport Ref
from ftcuda._objects.stream.stream cimport StreamSource


cdef class GraphSource(StreamSource):
    """The class below `GraphBuilder` that graphs know."""

    cdef int take_definition(self, Ref[GraphDefinition]& definition, str verb) except -1:
        """What was built; raises if nothing was yet, with what it was wanted for."""
        raise NotImplementedError
