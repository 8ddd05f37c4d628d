"""What launches need of a kernel: the core's, and how its arguments are packed."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free

cimport core.code.kernel as core
from ftcuda._objects.support.public_class cimport declare_handle

from ftcuda.errors import NotSupportedError


cdef class KernelHandle:
    """Below `Kernel`, which the code that it is in makes."""

    _made = "kernels are made by ObjectCode.get_kernel()"

    def __dealloc__(self):
        PyMem_Free(self._slots)
        if self._kernel != NULL:
            with nogil:
                self._kernel.release()

    cdef int adopt(self, core.Kernel* made) except -1:
        cdef size_t index
        cdef size_t offset = 0
        self._kernel = made
        self._slot_count = -1
        if not made.has_layout():
            return 0
        cdef size_t count = made.layout().parameters.size()
        self._slots = <Slot*>PyMem_Calloc(count + 1, sizeof(Slot))
        if self._slots == NULL:
            raise MemoryError()
        for index in range(count):
            self._slots[index].size = made.layout().parameters[index].size
            self._slots[index].kind = made.layout().parameters[index].kind
            self._slots[index].offset = offset
            offset += (self._slots[index].size + 15) // 16 * 16
        self._block_size = offset
        self._slot_count = count
        return 0

    cdef int require_layout(self) except -1:
        if self._slot_count < 0:
            raise NotSupportedError(
                f"cannot tell the parameters of {self}: its image does not, and drivers before CUDA 12.4 cannot; "
                "load PTX or a cubin"
            )
        return 0


declare_handle(KernelHandle)
