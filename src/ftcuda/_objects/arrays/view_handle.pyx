"""What imports, exports, launches and tensor maps need of a view."""

cimport core.memory.buffer as buffers
from core.memory.copy cimport Place
from ftcuda._objects.arrays.dlpack cimport CPU, CUDA, CUDA_HOST, CUDA_MANAGED
from ftcuda._objects.stream.stream cimport Stream
from ftcuda._objects.support.public_class cimport PublicClass, declare_handle, unmade

from ftcuda._objects.arrays.elements import OPAQUE


cdef class ViewHandle:
    """Below `StridedMemoryView`, whose objects all of these are."""

    _made = "views are made by StridedMemoryView(obj, stream_ptr)"

    def __cinit__(self):
        self._shape = ()
        self._code = OPAQUE
        self._device_type = CPU

    cdef int assign(self, ViewHandle other) except -1:
        """Becomes the same as `other`; for a view that nobody else has yet."""
        self._pointer, self._shape, self._strides = other._pointer, other._shape, other._strides
        self._code, self._bits, self._dtype = other._code, other._bits, other._dtype
        self._device_type, self.device_id, self._is_host = other._device_type, other.device_id, other._is_host
        self.readonly, self.exporting_obj, self._stream = other.readonly, other.exporting_obj, other._stream
        self._buffer, self._imported, self._exported = other._buffer, other._imported, other._exported
        return 0

    cdef int require_made(self) except -1:
        """Refuses an object of a subclass that forgot to call `__init__`, which has no elements of any size."""
        if self._bits == 0:
            raise TypeError(f"{type(self).__name__} was not made: its __init__ must call super().__init__")
        return 0

    cdef Py_ssize_t elements(self) noexcept:
        cdef Py_ssize_t product = 1
        for extent in self._shape:
            product *= <Py_ssize_t>extent
        return product

    cdef size_t itemsize_of(self) noexcept:
        return self._bits // 8

    cdef buffers.Buffer* core_buffer(self) noexcept:
        if self._buffer is None:
            return NULL
        return self._buffer._buffer

    cdef Place place(self) noexcept:
        cdef Place place
        place.pointer = self._pointer
        place.buffer = self.core_buffer()
        return place

    cdef tuple full_strides(self):
        return contiguous_strides(self._shape) if self._strides is None else self._strides

    cdef bint is_contiguous(self):
        """Whether the elements lie in C order without gaps."""
        if self._strides is None or self.elements() == 0:
            return True
        cdef Py_ssize_t expected = 1
        for extent, stride in zip(reversed(self._shape), reversed(self._strides)):
            if extent != 1 and stride != expected:
                return False
            expected *= <Py_ssize_t>extent
        return True

    def __repr__(self):
        kind = {CPU: "host", CUDA: f"device {self.device_id}", CUDA_HOST: "pinned",
                CUDA_MANAGED: "managed"}[self._device_type]
        return f"<StridedMemoryView {self._pointer:#x}, shape {self._shape}, {self._bits // 8}-byte elements, {kind}>"


cdef const PublicClass* views = declare_handle(ViewHandle)


cdef ViewHandle unmade_view():
    """A view to be filled, which nobody else has yet."""
    return unmade(views)


cdef ViewHandle same_view(ViewHandle other):
    """A view of the same, to be changed before anybody else has it."""
    cdef ViewHandle made = unmade_view()
    made.assign(other)
    return made


cdef ViewHandle new_view(object exporter, Stream stream, tuple shape, tuple strides):
    cdef ViewHandle made = unmade_view()
    made.exporting_obj = exporter
    made._stream = stream
    made._shape = shape
    made._strides = strides
    return made


cdef tuple contiguous_strides(tuple shape):
    strides = []
    cdef object stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= max(extent, 1)
    return tuple(reversed(strides))
