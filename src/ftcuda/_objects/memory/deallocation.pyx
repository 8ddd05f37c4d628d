"""What holds memory that is not ftcuda's: an owner, or the call of `deallocate` of a resource written in Python.

Each is the core's from the buffer's beginning on, which hands it out once: when it ends, the memory is given back.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

cimport core.memory.buffer as buffers
cimport core.stream.stream as streams
from core.device.device cimport Context, CUevent
from core.sync.reason cimport Status
from ftcuda._objects.memory.buffer_handle cimport BufferHandle
from ftcuda._objects.stream.stream cimport Stream
from ftcuda._objects.support.deferred_release cimport PendingCall, release_after, release_holder

from ftcuda._objects.stream.stream import LEGACY_DEFAULT_STREAM
from ftcuda._objects.support.deferred_release import run_contained
from ftcuda.errors import ClosedError

cdef extern from "Python.h":
    void Py_XDECREF(PyObject* object)
    int Py_IsFinalizing() nogil


cdef class Deallocation(PendingCall):
    def __dealloc__(self):
        Py_XDECREF(self._named.load())
        end_hold(self._held)

    @staticmethod
    cdef Deallocation of(object resource, size_t address, size_t size, Stream stream):
        cdef Deallocation made = Deallocation.__new__(Deallocation)
        made._resource = resource
        made._address = address
        made._size = size
        made._stream = stream
        return made

    cdef void hold(self, buffers.Buffer* buffer) noexcept:
        """Once, before others know the buffer."""
        buffer.retain()
        buffer.leave_credit_to_holder()
        self._held = buffer

    cdef int name(self, Stream stream) except -1:
        """Notes the stream that `close` was given, unless another thread was first. By who is inside the buffer."""
        cdef PyObject* none = NULL
        if self._named.compare_exchange_strong(none, <PyObject*>stream):
            Py_INCREF(stream)
        return 0

    cdef int call(self) except -1:
        cdef Stream stream = self._stream
        if self._named.load() != NULL:
            stream = <Stream><object>self._named.load()
        if stream.is_closed:  # what is allowed to a stream of ours that buffers still use, others cannot ask of it
            stream = LEGACY_DEFAULT_STREAM
        # A resource that fails to say how it frees gets its memory back all the same.
        if self._event != NULL and not (
            run_contained(is_ordered, self._resource) and order_after(stream, self._context, self._event)
        ):
            return release_after(self._context, self._event, self)
        if Py_IsFinalizing():
            return 0  # the resource's module may be empty by now
        with nogil:
            self._held.close_window()  # from here on the memory is the resource's, which may have it from a block
        run_contained(self._resource.deallocate, self._address, self._size, stream=stream)
        with nogil:
            self._held.credit()
        return 0


cdef class Ownership:
    def __dealloc__(self):
        cdef buffers.ReleasedHolder released
        end_hold(self._held)
        if self._lent != NULL:
            with nogil:
                self._lent.leave(released)
            release_holder(&self._lent.context(), released.holder, released.event, False)
            self._lent.release_attached()

    @staticmethod
    cdef Ownership of(object owner, BufferHandle buffer):
        cdef Ownership made = Ownership.__new__(Ownership)
        made.owner = owner
        cdef bint entered
        if buffer is not None:
            with nogil:
                entered = buffer._buffer.enter()
            if not entered:
                raise ClosedError(f"cannot wrap memory of {owner}: it is closed")
            made._lent = buffer._buffer
            made._lent.retain()
        return made

    cdef void hold(self, buffers.Buffer* buffer) noexcept:
        """Once, before others know the buffer."""
        buffer.retain()
        self._held = buffer


cdef void end_hold(buffers.Buffer* held) noexcept:
    """The memory is given back, or will never be: a buffer that it lies in need not wait for it."""
    if held != NULL:
        with nogil:
            held.close_window()
        held.release_attached()


def is_ordered(resource):
    """Whether a resource says that it frees in the order of the stream it is given."""
    try:
        return bool(resource.is_stream_ordered)
    except (AttributeError, NotImplementedError):
        return False


cdef bint order_after(Stream stream, Context* context, CUevent event) except -1:
    """Whether `stream` could be made to wait for the event, which it may refuse, for instance while it is captured."""
    cdef streams.Stream* target = stream.on(context)
    cdef Status status
    with nogil:
        status = target.wait(context[0], event)
    return status.ok()
