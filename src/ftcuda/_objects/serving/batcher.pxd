from core.serving.batcher cimport Batcher as CoreBatcher, Batchers
from ftcuda._objects.serving.row_layout cimport RowLayout


cdef class Batcher:
    cdef Batchers _batchers                # constant, as all that follow; one for each device
    cdef RowLayout _inputs, _outputs
    cdef tuple _devices
    cdef size_t _most                      # rows that may wait
    cdef size_t _priorities
    cdef object __weakref__

    cdef CoreBatcher* least_queued(self) noexcept nogil
    cdef object give(self, object given, bint many, object priority, object deadline, object timeout)
