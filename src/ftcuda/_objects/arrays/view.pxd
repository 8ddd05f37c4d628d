from ftcuda._objects.arrays.view_handle cimport ViewHandle


cdef class StridedMemoryView(ViewHandle):
    pass
