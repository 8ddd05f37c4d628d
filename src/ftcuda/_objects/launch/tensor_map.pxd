cimport core.launch.tensor_map as core
from ftcuda._objects.arrays.view_handle cimport ViewHandle


cdef class TensorMapDescriptor:
    # Constant once the map is made.
    cdef core.TensorMap* _map             # synchronises itself; keeps the tensor
    cdef object _device
    cdef unsigned _alignment              # of the tensor's address, in bytes
    cdef object __weakref__

    @staticmethod
    cdef TensorMapDescriptor adopt(core.TensorMap* made, object device, unsigned alignment)

    cdef ViewHandle read(self, char* bytes)


cdef enum:
    MAP_BYTES = 128
