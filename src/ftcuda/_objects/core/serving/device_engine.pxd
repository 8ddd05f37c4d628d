from libcpp.vector cimport vector

from core.completion.deferred_release cimport ForeignReference
from core.memory.buffer cimport Buffer
from core.serving.batcher cimport Batcher, Policy
from core.serving.device_lane cimport DeviceLane
from core.serving.rows cimport RowSizes
from core.sync.ref cimport Ref


cdef extern from "_core/serving/device_engine.hpp" namespace "ftcuda::core::serving" nogil:
    size_t slab_bytes(const Policy& policy, const RowSizes& inputs, const RowSizes& outputs)
    Ref[Batcher] serve(
        Policy policy,
        RowSizes inputs,
        RowSizes outputs,
        vector[Ref[DeviceLane]] lanes,
        Ref[Buffer] memory,
        Ref[ForeignReference] keeper,
    ) except +
