"""What all arrays need of a buffer: its memory, who frees it, and whose it is."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

cimport core.memory.buffer as core
cimport core.memory.resource as resources
cimport core.stream.stream as streams
from core.device.device cimport Context
from core.memory.copy cimport Location, locate
from core.memory.resource cimport MemoryKind
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.support.deferred_release cimport PendingCall, amid_collection, make_call, release_holder
from ftcuda._objects.support.public_class cimport declare_handle
from ftcuda._objects.support.raising cimport raise_status

from ftcuda._objects.support.hooks import FREED, announce
from ftcuda._objects.support.deferred_release import AFTER_COLLECTIONS

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)
    int Py_IsFinalizing()
    ctypedef int (*visitproc)(PyObject* object, void* extra) noexcept
    ctypedef int (*traverseproc)(PyObject* self, visitproc visit, void* extra) noexcept
    ctypedef struct PyTypeObject:
        traverseproc tp_traverse

cdef dict on_free = FREED


@cython.no_gc_clear  # hooks are told of the resource when the memory goes
cdef class BufferHandle:
    """Below `Buffer`, which can be exported, and so stands above arrays."""

    _made = "buffers are made by a memory resource, Device.allocate() or Buffer.from_handle()"

    def __del__(self):
        # Foreign memory goes before the garbage collector clears anything, so that its resource or owner is whole.
        # Views of it may be left, and work that another finalizer of the same collection submitted: for them the core
        # keeps what holds the memory, where the collector does not see it from now on. Memory of our own resources
        # waits for __dealloc__(), because foreign memory may lie in it.
        if self._buffer != NULL and self._buffer.holder() != NULL:
            self.end(NULL, None, True)

    def __dealloc__(self):
        if self._buffer != NULL:
            self.end(NULL, None, True)
            self._buffer.release_attached()  # of a closed buffer nothing is left but memory

    cdef int end(self, streams.Stream* stream, object named, bint collected) except -1:
        """Closes, and lets go of what held the memory. `collected`: by a finalizer."""
        cdef core.ReleasedHolder released
        cdef Status status
        cdef Context* context = &self._buffer.context()
        # Work keeps buffers of foreign memory: one to which only the finalizer's caller refers has none.
        cdef bint idle = collected and self._buffer.holder() != NULL and Py_REFCNT(self) == 1
        cdef Announcement announcement = None
        # Not at the end of the process, when nothing of Python's may be left.
        if on_free and self._memory_resource is not None and not Py_IsFinalizing():
            announcement = Announcement.of(self, named, not collected)
        self._shows_holder.store(False)  # before anybody can take it out of the core
        with nogil:
            status = self._buffer.close(stream, idle, amid_collection(), released)
        if not status.ok():
            raise_status(status, "close", self, () if named is None else (("the stream", named),))
        if announcement is not None and self._buffer.announce_close():
            make_call(announcement, not collected)
        return release_holder(context, released.holder, released.event, not collected)

    cdef object where(self):
        """The ordinal of the device, -1 for the host's memory."""
        return self._memory_resource.device_id if self._where == Where.as_resource else self._ordinal

    cdef object is_reached_by_devices(self):
        if self._where == Where.as_resource:
            return self._memory_resource.is_device_accessible
        return self._where != Where.on_host

    cdef object is_reached_by_host(self):
        if self._where == Where.as_resource:
            return self._memory_resource.is_host_accessible
        return self._where != Where.on_device

    cdef bint migrates(self) except -1:
        if self._where == Where.as_resource:
            return self._is_managed or bool(getattr(self._memory_resource, "is_managed", False))
        return self._where == Where.managed

    def __repr__(self):
        state = ", closed" if self._buffer.is_closed() else ""
        return f"<Buffer {self._buffer.pointer():#x}, {self._buffer.size()} bytes{state}>"


cdef class Announcement(PendingCall):
    """Hooks on frees that are told of a buffer, whose memory is nobody else's until they were."""

    cdef object _resource          # constant, as all of them
    cdef object _stream
    cdef core.Buffer* _buffer      # with a count
    cdef bint _entered             # a lease on it; not if somebody has closed it before
    cdef bint _closing

    def __dealloc__(self):
        cdef core.ReleasedHolder released
        if self._buffer == NULL:
            return
        if self._entered:
            with nogil:
                self._buffer.leave(released)
            release_holder(&self._buffer.context(), released.holder, released.event, self._closing)
        self._buffer.release_attached()

    @staticmethod
    cdef Announcement of(BufferHandle buffer, object stream, bint closing):
        cdef Announcement made = Announcement.__new__(Announcement)
        made._resource, made._stream, made._closing = buffer._memory_resource, stream, closing
        made._buffer = buffer._buffer
        made._buffer.retain()
        with nogil:
            made._entered = made._buffer.enter()
        return made

    cdef int call(self) except -1:
        announce(on_free, self._buffer.pointer(), self._buffer.size(), self._resource, self._stream)
        return 0


cdef int visit_all(PyObject* self, visitproc visit, void* extra) noexcept:
    """The collector's view of a buffer: with what holds its memory, until that may be taken out of the core."""
    cdef int stop = visit_fields(self, visit, extra)
    cdef core.Buffer* buffer = (<BufferHandle>self)._buffer
    if stop == 0 and buffer != NULL and (<BufferHandle>self)._shows_holder.load() and buffer.holder() != NULL:
        stop = visit(<PyObject*>(<BufferHandle>self)._buffer.holder(), extra)
    return stop


cdef PyTypeObject* buffer_type = <PyTypeObject*>BufferHandle
cdef traverseproc visit_fields = buffer_type.tp_traverse  # constant
buffer_type.tp_traverse = visit_all

declare_handle(BufferHandle)


def end_collection():
    """Memory that waits for nothing else any more goes."""
    with nogil:
        core.Buffer.end_collection()


AFTER_COLLECTIONS.append(end_collection)


WHERE_OF[:] = [Where.on_host, Where.on_device, Where.pinned, Where.managed]


cdef int ordinal_of_memory(uint64_t pointer, Location& location) except -2:
    """Asks the driver whose memory an address is; its device's ordinal, of pinned memory too; -1 for memory that the
    driver does not know."""
    cdef int ordinal = -1
    cdef Status status
    cdef Context* context = as_device(None).context_of()
    with nogil:
        status = locate(context[0], pointer, location, ordinal)
    if not status.ok():
        raise_status(status, "find the memory at", f"{pointer:#x}")
    return -1 if location == Location.unknown else ordinal


cdef BufferHandle pinned_memory(size_t size, streams.Stream* stream):
    """Memory for a copy that a consumer asked for."""
    cdef Ref[resources.MemoryResource] source = resources.MemoryResource.plain(stream.context(), MemoryKind.pinned)
    cdef Ref[core.Buffer] made
    cdef Status status
    with nogil:
        status = core.Buffer.allocate(source.get()[0], size, stream, made)
    if not status.ok():
        raise_status(status, "allocate", f"{size} bytes of pinned memory")
    cdef BufferHandle memory = BufferHandle.__new__(BufferHandle)
    adopt(memory, made.detach(), None)
    memory._where, memory._ordinal = Where.pinned, -1
    return memory
