"""What kernels need of the code that they are in."""

from ftcuda._objects.support.raising cimport refuse_to_make_base


cdef class CodeHandle:
    """Below `ObjectCode`, which makes kernels."""

    _made = "object code is made by Program.compile() or ObjectCode.from_ptx(), from_cubin(), from_fatbin()"

    def __dealloc__(self):
        if self._module != NULL:
            with nogil:
                self._module.release()


refuse_to_make_base(CodeHandle)
