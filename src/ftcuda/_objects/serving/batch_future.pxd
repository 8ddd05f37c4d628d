from cpython.object cimport PyObject

from core.completion.completion cimport Waiter
from core.serving.batcher cimport Batcher
from core.serving.request cimport Request
from ftcuda._objects.stream.awaiting cimport Ending


cdef class BatchFuture(Ending):
    cdef Request* _request    # constant
    cdef Batcher* _batcher    # constant; that has the request, of the owner's
    cdef object _owner        # constant; the object that the request was given to
    cdef PyObject* _outputs   # constant; the owner's RowLayout, see there
    cdef bint _many           # constant

    @staticmethod
    cdef BatchFuture of(Request* made, Batcher* batcher, object owner, PyObject* outputs, bint many)
    cdef object outcome(self, object timeout)
    cdef object answer(self)
    cdef object array(self, size_t index)
