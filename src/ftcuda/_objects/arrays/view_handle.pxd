from libc.stdint cimport uint64_t

cimport core.memory.buffer as buffers
from core.memory.copy cimport Place
from ftcuda._objects.arrays.dlpack cimport Imported
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.stream.stream cimport Stream


cdef class ViewHandle:
    # All constant once the view is made.
    cdef uint64_t _pointer
    cdef tuple _shape
    cdef tuple _strides            # in elements; None: C-contiguous
    cdef int _code                 # DLPack's, or OPAQUE
    cdef int _bits                 # of an element
    cdef object _dtype             # None: made of code and bits when asked for
    cdef int _device_type          # DLPack's
    cdef bint _is_host             # the host reaches it
    cdef readonly int device_id
    cdef readonly bint readonly
    cdef readonly object exporting_obj
    cdef BufferHandle _buffer            # None: memory that the exporting object keeps
    cdef Imported _imported        # keeps a DLPack tensor
    cdef object _exported          # keeps the export of a buffer protocol, or a lease on a buffer of ours
    cdef Stream _stream            # in whose order the memory may be used; None: not known
    cdef object __weakref__

    cdef int assign(self, ViewHandle other) except -1
    cdef int require_made(self) except -1
    cdef Py_ssize_t elements(self) noexcept
    cdef size_t itemsize_of(self) noexcept
    cdef buffers.Buffer* core_buffer(self) noexcept
    cdef Place place(self) noexcept
    cdef tuple full_strides(self)
    cdef bint is_contiguous(self)


cdef ViewHandle unmade_view()
cdef ViewHandle same_view(ViewHandle other)
cdef ViewHandle new_view(object exporter, Stream stream, tuple shape, tuple strides)
cdef tuple contiguous_strides(tuple shape)
