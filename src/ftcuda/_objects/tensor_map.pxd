cimport core.buffer as buffers
cimport core.tensor_map as core
from ftcuda._objects.view cimport StridedMemoryView


cdef class TensorMapDescriptor:
    cdef core.TensorMap* _map             # constant
    cdef StridedMemoryView _view          # constant; keeps the tensor
    cdef object _device                   # constant
    cdef object __weakref__

    @staticmethod
    cdef TensorMapDescriptor adopt(core.TensorMap* made, StridedMemoryView view, object device)
