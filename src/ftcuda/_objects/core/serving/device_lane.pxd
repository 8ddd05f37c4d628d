from libcpp.vector cimport vector

from core.graph.graph cimport Graph
from core.memory.buffer cimport Buffer
from core.serving.rows cimport RowSizes
from core.stream.stream cimport Stream
from core.sync.ref cimport Ref, Shared


cdef extern from "_core/serving/device_lane.hpp" namespace "ftcuda::core::serving" nogil:
    cppclass DeviceLane:
        DeviceLane(
            Ref[Stream] stream,
            vector[Ref[Buffer]] inputs,
            vector[Ref[Buffer]] outputs,
            RowSizes of_inputs,
            RowSizes of_outputs,
            vector[Ref[Graph]] graphs,
        ) except +
        size_t take()
        void computed(Ref[Shared] cause)
        void release()
