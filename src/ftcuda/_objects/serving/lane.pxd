from core.serving.device_lane cimport DeviceLane
from core.serving.rows cimport RowSizes
from core.sync.ref cimport Ref


cdef class Lane:
    cdef DeviceLane* _lane    # constant

    @staticmethod
    cdef Lane of(object parts, RowSizes& inputs, RowSizes& outputs)
