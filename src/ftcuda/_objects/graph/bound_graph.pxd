from libcpp.vector cimport vector

cimport core.graph.graph as core
from core.graph.replacement cimport Place, Replacement


cdef class BoundGraph:
    # Constant.
    cdef core.Graph* _graph
    cdef readonly object graph
    cdef readonly tuple parameters
    cdef tuple _kernels                 # for each slot, whose argument it is; None: a configuration
    cdef vector[size_t] _ends           # for each name, the number of slots of it and of those before
    cdef vector[vector[Place]] _places  # of each slot, all that have its bytes
    cdef vector[Replacement] _captured  # of each slot, what a launch has that replaces nothing
    cdef size_t _memory_size            # of what a launch needs: replacements, buffers, and blocks of all of _kernels
    cdef object __weakref__


cdef BoundGraph bind(core.Graph* graph, object owner)
