from libcpp.vector cimport vector

cimport core.graph.graph as core
from core.graph.replacement cimport Place


cdef class BoundGraph:
    # Constant.
    cdef core.Graph* _graph
    cdef readonly object graph
    cdef readonly tuple parameters
    cdef tuple _ends                    # for each name, the number of slots of it and of those before
    cdef tuple _kernels                 # for each slot, whose argument it is
    cdef vector[vector[Place]] _places  # of each slot, all that have its bytes
    cdef size_t _block_size             # of the arguments of all of _kernels
    cdef object __weakref__


cdef BoundGraph bind(core.Graph* graph, object owner)
