"""What launches need of a kernel: the core's, and how its arguments are packed."""

cimport core.code.kernel as core
from ftcuda._objects.support.public_class cimport declare_handle

from ftcuda.errors import NotSupportedError


cdef class KernelHandle:
    """Below `Kernel`, which the code that it is in makes."""

    _made = "kernels are made by ObjectCode.get_kernel()"

    def __dealloc__(self):
        if self._kernel != NULL:
            with nogil:
                self._kernel.release()

    cdef int adopt(self, core.Kernel* made) except -1:
        self._kernel = made
        self._slot_count = made.arguments().slots.size() if made.has_layout() else -1
        self._slots = made.arguments().slots.data()
        self._block_size = made.arguments().bytes
        return 0

    cdef int require_layout(self) except -1:
        if self._slot_count < 0:
            raise NotSupportedError(
                f"cannot tell the parameters of {self}: its image does not, and drivers before CUDA 12.4 cannot; "
                "load PTX or a cubin"
            )
        return 0


declare_handle(KernelHandle)
