"""Memory resources: where buffers come from."""

import gc

from libc.stdint cimport uint64_t

cimport core.memory.buffer as buffers
cimport core.memory.resource as core
cimport core.stream.stream as streams
from core.completion.context_wait cimport synchronize
from core.device.device cimport Context
from core.driver.status cimport describe
from core.memory.resource cimport MemoryKind
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport DeviceHandle, device_of
from ftcuda._objects.memory.buffer cimport Buffer, checked_buffer
from ftcuda._objects.memory.size cimport checked_size
from ftcuda._objects.stream.stream cimport Stream, as_stream
from ftcuda._objects.support.deferred_release cimport give_back, release_done
from ftcuda._objects.support.raising cimport check, warn_of_errors, raise_status

from ftcuda._objects.support.hooks import ALLOCATED, announce
from ftcuda._objects.stream.stream import LEGACY_DEFAULT_STREAM
from ftcuda._objects.support.options import integer
from ftcuda._objects.support.overridable import overridable
from ftcuda.errors import ClosedError, OutOfMemoryError


cdef dict on_allocate = ALLOCATED


cdef class MemoryResource:
    """Where buffers come from. Constant, and shared by any number of threads.

    A resource with a pool may be closed: it allocates no more, and the pool goes when its last buffer has gone.

    A resource may be written in Python: a subclass with ``allocate(size, *, stream=None)``, which returns
    ``Buffer.from_handle(address, size, mr=self)``, ``deallocate(ptr, size, *, stream)``, and ``device_id``,
    ``is_device_accessible`` and ``is_host_accessible`` as properties or attributes. Both methods are called from any
    thread. See docs/guide/allocators.md.
    """

    def __init__(self):
        if type(self) is MemoryResource:
            raise TypeError("MemoryResource is abstract: use one of its subclasses in ftcuda, or write one")

    def __dealloc__(self):
        if self._resource != NULL:
            with nogil:
                self._resource.close()
                self._resource.release()

    cdef core.MemoryResource* opened(self) except NULL:
        if self._resource == NULL:
            raise NotImplementedError(
                f"{type(self).__name__} has no allocator of ftcuda's behind it, and does not define this itself"
            )
        return self._resource

    cdef object allocate_for(self, object size, object stream, object reported):
        """A buffer whose memory_resource is `reported`."""
        if self._resource == NULL:
            return checked_buffer(self, self.allocate(size, stream=stream), size)
        return allocate(self, size, stream, reported)

    cdef str room(self):
        """How much there is, for who finds none."""
        cdef size_t free = 0, total = 0
        cdef Context* context = &self.opened().context()
        cdef Status status
        with nogil:
            status = context.memory_info(free, total)
        if not status.ok():
            return "the device does not say how much is free"
        return f"{free} of {total} bytes of the device are free"

    def allocate(self, size, *, stream=None):
        """Allocates a buffer.

        Parameters
        ----------
        size : int
            Bytes. Zero is allowed and allocates nothing.
        stream : Stream
            The memory may be used in this stream's order from here on, and is freed in it. Resources that are not
            stream-ordered allow None; the others take the device's legacy default stream for it.

        Returns
        -------
        Buffer

        Thread safety: shared.

        Raises
        ------
        OutOfMemoryError
            After unused memory was collected and given back, and the allocation tried again.
        """
        self.opened()
        return self.allocate_for(size, stream, self)

    def close(self):
        """Refuses further allocations. Idempotent.

        A pool of its own is destroyed by the first `Device.sync` after its last buffer is gone. Closing a device's own
        resource, which all threads allocate from, does nothing.

        Thread safety: atomic.
        """
        if self._resource != NULL:
            with nogil:
                self._resource.close()

    @overridable
    def is_closed(self):
        """Whether :meth:`close` was called. Thread safety: atomic."""
        return self._resource != NULL and self._resource.is_closed()

    @overridable
    def device(self):
        """The device whose context the resource belongs to. Thread safety: atomic."""
        return device_of(&self.opened().context())

    @overridable
    def device_id(self):
        """Ordinal of the device of device memory; -1 for host memory. Thread safety: atomic."""
        return -1 if self.opened().kind() == MemoryKind.pinned else self.opened().context().device().ordinal()

    @overridable
    def is_device_accessible(self):
        """Whether kernels may touch the memory: always. Thread safety: atomic."""
        return True

    @overridable
    def is_host_accessible(self):
        """Whether the host may touch the memory. Thread safety: atomic."""
        return self.opened().kind() != MemoryKind.device

    @overridable
    def is_managed(self):
        """Whether the memory migrates between host and device. Thread safety: atomic."""
        return self._resource != NULL and self._resource.kind() == MemoryKind.managed

    @overridable
    def is_stream_ordered(self):
        """Whether allocations come from a pool, in a stream's order. Thread safety: atomic."""
        return self.opened().is_pool()

    @overridable
    def is_ipc_enabled(self):
        """Whether other processes can have the memory: never, since ftcuda has no IPC yet. Thread safety: atomic."""
        return False

    @overridable
    def is_mapped(self):
        """Whether the pool is another process's: never, since ftcuda has no IPC yet. Thread safety: atomic."""
        return False

    @overridable
    def is_handle_owned(self):
        """Whether the pool is this resource's own. Thread safety: atomic."""
        return self.opened().is_owned()

    @overridable
    def handle(self):
        """The ``CUmemoryPool`` as an integer, 0 where there is none. Thread safety: atomic."""
        return <size_t>self.opened().cu_pool()

    @overridable
    def attributes(self):
        """The pool's attributes. Thread safety: atomic."""
        return MemoryPoolAttributes(self)

    def trim(self, bytes_to_keep=0):
        """Gives unused memory, of the cache and of the pool, back to the system. Thread safety: shared.

        Parameters
        ----------
        bytes_to_keep : int
        """
        cdef size_t keep = checked_size(bytes_to_keep, "bytes_to_keep")
        cdef Status status
        cdef core.MemoryResource* resource = self.opened()
        with nogil:
            status = resource.trim(keep)
        check(status, "trim", self)

    def __repr__(self):
        if self._resource == NULL:
            return f"<{type(self).__name__}>"
        return f"<{type(self).__name__} of {self.device!r}{' closed' if self.is_closed else ''}>"


cdef Buffer allocate(MemoryResource resource, object size, object stream, object reported):
    cdef size_t wanted = checked_size(size, "size")
    cdef Ref[buffers.Buffer] made
    cdef Status status
    cdef streams.Stream* core_stream = NULL
    cdef core.MemoryResource* source = resource.opened()
    cdef Context* context = &source.context()
    cdef Stream allocating_stream
    warn_of_errors()
    if stream is None and resource.is_stream_ordered:
        stream = LEGACY_DEFAULT_STREAM
    if stream is not None:
        allocating_stream = as_stream(stream)
        core_stream = allocating_stream.on(context)
    with nogil:
        status = buffers.Buffer.allocate(source[0], wanted, core_stream, made)
    if status.code() == 2:
        gc.collect()  # what nobody refers to any more may hold the memory
        release_done()
        give_back(1.0)  # to resources written in Python that have it from here
        with nogil:
            status = buffers.Buffer.allocate_where_memory_is_short(source[0], wanted, core_stream, made)
        if status.code() == 2:
            raise out_of_memory(resource, wanted, status)
    if not status.ok():
        involved = () if stream is None else (("the stream", allocating_stream),)
        raise_status(status, "allocate", f"{wanted} bytes from {resource}",
                     (*involved, ("the memory resource", resource)))
    cdef Buffer buffer = Buffer.made_of(made.detach(), reported)
    if on_allocate:
        announce(on_allocate, buffer.handle, wanted, reported, stream)
    return buffer


cdef object out_of_memory(MemoryResource resource, size_t wanted, Status refused):
    return OutOfMemoryError(
        f"cannot allocate {wanted} bytes from {resource}: CUDA_ERROR_OUT_OF_MEMORY, also after collecting garbage "
        f"and giving unused memory back; {resource.room()}",
        refused.code(), "CUDA_ERROR_OUT_OF_MEMORY", describe(refused.entry()).symbol.decode(),
    )


cdef object allocate_from(object resource, object size, object stream, object reported):
    """A buffer from any resource, one that only looks like one too."""
    if isinstance(resource, MemoryResource):
        return (<MemoryResource>resource).allocate_for(size, stream, reported)
    return checked_buffer(resource, resource.allocate(size, stream=stream), size)


cdef int not_made(MemoryResource resource) except -1:
    """Refuses a second call of `__init__`: other threads use what the first one made."""
    if resource._resource != NULL:
        raise TypeError("a memory resource is constant: make another one")
    return 0


cdef int make(MemoryResource resource, DeviceHandle device, MemoryKind kind, size_t limit, bint default) except -1:
    """Gives `resource` a pool: the device's default one, or one of its own."""
    cdef Ref[core.MemoryResource] made
    cdef Status status
    cdef Context* context = device.context_of()
    not_made(resource)
    with nogil:
        if default:
            status = core.MemoryResource.default_pool(context[0], made)
        else:
            status = core.MemoryResource.make_pool(context[0], kind, limit, made)
            if status.code() == 2 and synchronize(context[0]).ok():
                status = core.MemoryResource.make_pool(context[0], kind, limit,
                                                       made)  # closed pools go at a synchronisation
    check(status, "make a memory pool on", device)
    resource._resource = made.detach()
    return 0


cdef int make_plain(MemoryResource resource, DeviceHandle device, MemoryKind kind) except -1:
    not_made(resource)
    resource._resource = core.MemoryResource.plain(device.context_of()[0], kind).detach()
    return 0


# CUmemPool_attribute, cuda.h 13.5.
POOL_ATTRIBUTES = {
    "reuse_follow_event_dependencies": 1,
    "reuse_allow_opportunistic": 2,
    "reuse_allow_internal_dependencies": 3,
    "release_threshold": 4,
    "reserved_mem_current": 5,
    "reserved_mem_high": 6,
    "used_mem_current": 7,
    "used_mem_high": 8,
}
SETTABLE = frozenset({"reuse_follow_event_dependencies", "reuse_allow_opportunistic",
                      "reuse_allow_internal_dependencies",
                      "release_threshold"})


class MemoryPoolAttributes:
    """Attributes of a pool by cuda.core's names; reading one asks the driver.

    They keep the pool, also when it is closed.

    The reuse attributes and ``release_threshold`` (bytes) may be set; the ``_current`` and ``_high`` ones are bytes.
    """

    __slots__ = ("_lease",)

    def __init__(self, resource):
        object.__setattr__(self, "_lease", PoolLease(resource))

    def __getattr__(self, name):
        if name not in POOL_ATTRIBUTES:
            raise AttributeError(f"memory pools have no attribute {name!r}")
        value = _get_attribute(self._lease, POOL_ATTRIBUTES[name])
        return bool(value) if name.startswith("reuse") else value

    def __setattr__(self, name, value):
        if name not in SETTABLE:
            raise AttributeError(f"attribute {name!r} of a memory pool cannot be set")
        _set_attribute(self._lease, POOL_ATTRIBUTES[name], integer(value, name))

    def __dir__(self):
        return sorted(POOL_ATTRIBUTES)


cdef class PoolLease:
    """Keeps a pool for those who ask for its attributes."""

    cdef core.MemoryResource* _pool    # constant, with a reference
    cdef bint _entered                 # constant; not needed for the device's default pool, which nobody destroys
    cdef MemoryResource _resource      # constant

    def __cinit__(self, MemoryResource resource not None):
        self._pool = resource.opened()
        self._pool.retain()
        self._entered = self._pool.enter()
        self._resource = resource

    def __dealloc__(self):
        if self._pool != NULL:
            with nogil:
                if self._entered:
                    self._pool.leave()
                self._pool.release()

    cdef core.MemoryResource* pool(self) except NULL:
        if not self._entered and self._pool.is_owned():
            raise ClosedError(f"cannot ask for an attribute of {self._resource}: it is closed")
        return self._pool


def _get_attribute(PoolLease lease not None, int attribute):
    cdef Status status
    cdef uint64_t value = 0
    cdef core.MemoryResource* pool = lease.pool()
    with nogil:
        status = pool.get_attribute(attribute, value)
    check(status, "ask for an attribute of", lease._resource)
    return value


def _set_attribute(PoolLease lease not None, int attribute, uint64_t value):
    cdef Status status
    cdef core.MemoryResource* pool = lease.pool()
    with nogil:
        status = pool.set_attribute(attribute, value)
    check(status, "set an attribute of", lease._resource)
