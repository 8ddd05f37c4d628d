"""What kernels need of the code that they are in."""

from ftcuda._objects.support.public_class cimport declare_handle


cdef class CodeHandle:
    """Below `ObjectCode`, which makes kernels."""

    _made = "object code is made by Program.compile() or ObjectCode.from_ptx(), from_cubin(), from_fatbin()"

    def __dealloc__(self):
        if self._module != NULL:
            with nogil:
                self._module.release()


declare_handle(CodeHandle)
