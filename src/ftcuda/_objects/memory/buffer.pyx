"""Buffers."""

import numpy as np
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES
from cpython.object cimport PyObject

cimport core.memory.buffer as core
cimport core.memory.copy as copies
cimport core.stream.stream as streams
from core.memory.copy cimport Location
from core.completion.deferred_release cimport Retention
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.arrays.exports cimport copy_bytes, end_of_copy
from ftcuda._objects.arrays.imports cimport buffer_view
from ftcuda._objects.arrays.view_handle cimport ViewHandle
from ftcuda._objects.device.device_handle cimport DeviceHandle, as_device, device_of
from ftcuda._objects.memory.buffer_handle cimport BufferHandle, WHERE_OF, Where, adopt, ordinal_of_memory
from ftcuda._objects.memory.copy cimport Pattern, copy_buffer, pattern_of
from ftcuda._objects.memory.deallocation cimport Deallocation, Ownership
from ftcuda._objects.memory.size cimport checked_size
from ftcuda._objects.stream.stream cimport Stream, as_stream
from ftcuda._objects.support.deferred_release cimport give_way, release_holder, retain
from ftcuda._objects.support.public_class cimport stand_above
from ftcuda._objects.support.raising cimport release_and_warn, raise_status, refuse_to_make

from ftcuda._objects.stream.stream import LEGACY_DEFAULT_STREAM
from ftcuda._objects.support.handles import checked_handle
from ftcuda._objects.support.hooks import ALLOCATED, announce
from ftcuda._objects.support.options import integer
from ftcuda.errors import ClosedError

cdef extern from "Python.h":
    void Py_XINCREF(PyObject* object)

cdef dict on_allocate = ALLOCATED

cdef const char* BYTES_FORMAT_TEXT = b"B"
cdef char* BYTES_FORMAT = <char*>BYTES_FORMAT_TEXT


cdef class Buffer(BufferHandle):
    """A range of device, pinned host or managed memory. Made by a memory resource or :meth:`Device.allocate`.

    Host-accessible buffers offer the buffer protocol: ``np.frombuffer(buffer, dtype)`` shares their memory, which is
    freed after the last such view has gone. A context manager that closes at the end.
    """

    _made = "buffers are made by a memory resource, Device.allocate() or Buffer.from_handle()"

    @staticmethod
    cdef Buffer made_of(core.Buffer* made, object memory_resource):
        cdef Buffer buffer = Buffer.__new__(Buffer)
        adopt(buffer, made, memory_resource)
        return buffer

    @staticmethod
    def from_handle(ptr, size, mr=None, owner=None, *, stream=None):
        """Wraps memory that other code allocated.

        Parameters
        ----------
        ptr : int or CUdeviceptr
            Address.
        size : int
            Bytes.
        mr : MemoryResource, optional
            A resource written in Python, which allocated the memory: its ``deallocate(ptr, size, stream=...)`` is
            called once, when the buffer is closed or collected. If work that was submitted with the buffer is not done
            by then, it is called soon after it is, by a thread of ftcuda's; but at once, with a stream that was made to
            wait for that work, if ``mr.is_stream_ordered`` is true.
        owner : object, optional
            Kept alive until the buffer is closed or collected and the work submitted with it is done; closing waits for
            that.
        stream : Stream, optional
            What `deallocate` is given unless :meth:`close` named a stream, or that one is closed; None is the legacy
            default stream.

        Returns
        -------
        Buffer
            Who may touch the memory is what `mr` says, or what the driver says of the address.

        Thread safety: atomic.
        """
        cdef Ref[core.Buffer] made
        cdef Buffer buffer
        cdef DeviceHandle device
        cdef void* holder = NULL
        cdef size_t pointer = checked_handle(ptr, "ptr")
        cdef size_t bytes = checked_size(size, "size")
        if bytes > <size_t>-1 - pointer:
            raise ValueError(f"{bytes} bytes from address {pointer:#x} lie outside all memory")
        cdef Stream named = as_stream(LEGACY_DEFAULT_STREAM if stream is None else stream)
        if mr is not None and owner is not None:
            raise ValueError("memory is freed by its resource or by its owner: give mr or owner, not both")
        if mr is not None and not callable(getattr(mr, "deallocate", None)):
            raise TypeError(f"mr must have a method deallocate, which {type(mr).__name__} has not")
        cdef Location location = Location.unknown
        cdef int ordinal = -1
        cdef Deallocation deallocation
        cdef Ownership ownership
        if pointer != 0:
            ordinal = ordinal_of_memory(pointer, location)
        if mr is not None:
            give_way()
            deallocation = Deallocation.of(mr, pointer, bytes, named)
            holder = <void*>deallocation
            ordinal = device_of_resource(mr, ordinal)
        device = as_device(None) if ordinal < 0 else as_device(ordinal)
        if owner is not None:
            ownership = Ownership.of(owner, buffer_behind(owner))
            holder = <void*>ownership
        made = core.Buffer.wrap(device.context_of()[0], pointer, bytes, holder)
        if mr is not None:
            deallocation.hold(made.get())
        elif owner is not None:
            ownership.hold(made.get())
        Py_XINCREF(<PyObject*>holder)  # the core's, until it hands it out
        buffer = Buffer.made_of(made.detach(), mr)
        if mr is None:
            buffer._where = WHERE_OF[<int>location] if pointer != 0 else Where.on_device
            buffer._ordinal = -1 if buffer._where == Where.on_host else device.device_id
        else:
            buffer._is_managed = location == Location.managed
            if on_allocate:
                announce(on_allocate, pointer, bytes, mr, stream)
        return buffer

    @property
    def handle(self):
        """The address as an integer; 0 for a buffer of no bytes, and for a closed one. Thread safety: atomic."""
        return 0 if self._buffer.is_closed() else self._buffer.pointer()

    @property
    def size(self):
        """Bytes. Thread safety: atomic."""
        return self._buffer.size()

    @property
    def memory_resource(self):
        """The resource the memory came from; None for foreign memory, and once closed. Thread safety: atomic."""
        return None if self._buffer.is_closed() else self._memory_resource

    @property
    def owner(self):
        """The object that holds foreign memory; None once closed. Thread safety: atomic."""
        cdef core.ReleasedHolder released
        found = None
        if self._buffer.holder() != NULL and self._buffer.enter():
            holder = <object>self._buffer.holder()
            if isinstance(holder, Ownership):
                found = (<Ownership>holder).owner
            holder = None
            with nogil:
                self._buffer.leave(released)
            release_holder(&self._buffer.context(), released.holder, released.event, False)
        return found

    @property
    def device(self):
        """The device whose context the buffer belongs to. Thread safety: atomic."""
        return device_of(&self._buffer.context())

    @property
    def device_id(self):
        """Ordinal of the device; -1 for host memory. Thread safety: atomic."""
        return self.where()

    @property
    def is_device_accessible(self):
        """Whether kernels may touch the memory. Thread safety: atomic."""
        return self.is_reached_by_devices()

    @property
    def is_host_accessible(self):
        """Whether the host may touch the memory. Thread safety: atomic."""
        return self.is_reached_by_host()

    @property
    def is_managed(self):
        """Whether the memory migrates between host and device. Thread safety: atomic."""
        return self.migrates()

    @property
    def is_mapped(self):
        """Whether the memory is another process's: never, since ftcuda has no IPC yet. Thread safety: atomic."""
        return False

    @property
    def is_closed(self):
        """Whether :meth:`close` was called. Thread safety: atomic."""
        return self._buffer.is_closed()

    def close(self, stream=None):
        """Frees the memory after all work that was submitted with it, in whatever streams. Idempotent.

        Views that were exported before, numpy arrays for instance, may still be used: the memory is freed after the
        last of them.

        Parameters
        ----------
        stream : Stream, optional
            The free is in this stream's order; None takes the stream of the allocation.

        Thread safety: atomic. Calls in progress complete first. Blocks, detached, only for memory that has an owner:
        until the work submitted with it is done.
        """
        cdef streams.Stream* core_stream = NULL
        cdef core.ReleasedHolder released
        cdef Stream closing_stream
        cdef Status status
        if stream is not None:
            closing_stream = as_stream(stream)
            core_stream = closing_stream.on(&self._buffer.context())
            if self._buffer.holder() != NULL and self._buffer.enter():
                holder = <object>self._buffer.holder()
                if isinstance(holder, Deallocation) and not closing_stream.is_closed:
                    (<Deallocation>holder).name(closing_stream)
                holder = None
                with nogil:
                    self._buffer.leave(released)
                release_holder(&self._buffer.context(), released.holder, released.event, False)
        if self._buffer.is_of_graph():
            with nogil:
                status = self._buffer.close_in_graph(core_stream)
            if not status.ok():
                raise_status(status, "close", self, () if stream is None else (("the stream", stream),))
        self.end(core_stream, stream, False)
        release_and_warn()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def copy_to(self, dst=None, *, stream):
        """Copies this buffer's bytes to another buffer or array of the same number of bytes.

        Parameters
        ----------
        dst : Buffer, array or object with the buffer protocol, optional
            Contiguous. None allocates a buffer from the same resource.
        stream : Stream

        Returns
        -------
        object
            `dst`.

        Thread safety: atomic. Stream order: a submission. The copy is asynchronous; to pageable memory of the host it
        goes through pinned memory that ftcuda keeps, and the call returns when the bytes are there.
        """
        if dst is None:
            if self._memory_resource is None:
                raise ValueError(f"cannot copy {self} to a new buffer: it came from no memory resource; give dst")
            allocated = self._memory_resource.allocate(self.size, stream=stream)
            dst = checked_buffer(self._memory_resource, allocated, self.size)
        if isinstance(dst, Buffer):
            copy_buffer(dst, self, stream)
        else:
            copy_bytes(end_of_copy(dst, self, "dst"), byte_view(self), self.size, as_stream(stream), False)
        return dst

    def copy_from(self, src, *, stream):
        """Copies the bytes of another buffer or array, of the same number, to this buffer.

        Parameters
        ----------
        src : Buffer, array or object with the buffer protocol
            Contiguous.
        stream : Stream

        Thread safety: atomic. Stream order: a submission. The copy is asynchronous; pageable memory of the host is read
        before the call returns, and goes through pinned memory that ftcuda keeps.
        """
        if isinstance(src, Buffer):
            copy_buffer(self, src, stream)
        else:
            copy_bytes(byte_view(self), end_of_copy(src, self, "src"), self.size, as_stream(stream), False)

    def __dlpack_device__(self):
        """Type and id of the device, for DLPack consumers. Thread safety: atomic."""
        return byte_view(self).__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Exports the bytes, as int8, by DLPack. See `StridedMemoryView.__dlpack__`. Thread safety: atomic."""
        return byte_view(self).__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    @property
    def __cuda_array_interface__(self):
        """The bytes, as int8, by CUDA Array Interface v3. It keeps nothing alive. Thread safety: atomic."""
        return byte_view(self).__cuda_array_interface__

    def fill(self, value, *, stream):
        """Fills the memory with a repeated pattern.

        Parameters
        ----------
        value : int or object with the buffer protocol
            A byte from 0 to 255, or a pattern of 1, 2 or 4 bytes whose length divides the buffer's size.
        stream : Stream

        Thread safety: atomic. Stream order: a submission.
        """
        cdef Status status
        cdef Retention foreign
        cdef Retention* held = NULL
        cdef Pattern pattern = pattern_of(value)
        if self._buffer.size() % pattern.width:
            raise ValueError(f"cannot fill {self}: its size is not a multiple of the pattern's {pattern.width} bytes")
        if self._buffer.pointer() % pattern.width:
            raise ValueError(
                f"cannot fill {self}: its address is not a multiple of the pattern's {pattern.width} bytes"
            )
        cdef Stream filling_stream = as_stream(stream)
        cdef streams.Stream* core_stream = filling_stream.on(&self._buffer.context())
        if self._buffer.holder() != NULL:
            held = retain(foreign, self)
        with nogil:
            status = copies.fill(self._buffer[0], pattern.value, pattern.width, core_stream[0], held)
        if not status.ok():
            raise_status(status, "fill", self, (("the stream", filling_stream),))

    def __getbuffer__(self, Py_buffer* view, int flags):
        if not self.is_host_accessible:
            raise BufferError(
                f"cannot view {self}: it is device memory, which the host cannot touch; copy it to a pinned buffer"
            )
        cdef bint entered
        with nogil:
            entered = self._buffer.enter()
        if not entered:
            raise ClosedError(f"cannot view {self}: it is closed")
        view.buf = <void*><size_t>self._buffer.pointer()
        view.obj = self
        view.len = self._shape
        view.readonly = 0
        view.itemsize = 1
        view.format = BYTES_FORMAT if flags & PyBUF_FORMAT else NULL
        view.ndim = 1
        view.shape = &self._shape if flags & PyBUF_ND else NULL
        view.strides = &view.itemsize if (flags & PyBUF_STRIDES) == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = NULL

    def __releasebuffer__(self, Py_buffer* view):
        cdef core.ReleasedHolder released
        with nogil:
            self._buffer.leave(released)
        release_holder(&self._buffer.context(), released.holder, released.event, False)

    def __array__(self, dtype=None, copy=None):
        """The bytes as a numpy array. numpy asks where the buffer protocol refuses, and is told
        why. Thread safety: atomic.
        """
        return np.array(memoryview(self), dtype, copy=copy)

    def __eq__(self, other):
        # A closed buffer equals only itself: its address may be another one's by now.
        cdef Buffer buffer
        if not isinstance(other, Buffer):
            return NotImplemented
        buffer = other
        return self is other or (
            self._buffer.pointer() == buffer._buffer.pointer() and self._buffer.size() == buffer._buffer.size()
            and not self._buffer.is_closed() and not buffer._buffer.is_closed()
        )

    def __hash__(self):
        return hash((Buffer, self._buffer.pointer(), self._buffer.size()))


stand_above(Buffer, BufferHandle)
refuse_to_make(Buffer)


cdef BufferHandle buffer_behind(object owner):
    """The buffer that an owner is, or is a view of."""
    if isinstance(owner, BufferHandle):
        return owner
    return (<ViewHandle>owner)._buffer if isinstance(owner, ViewHandle) else None


cdef int device_of_resource(object resource, int found) except -2:
    """What a resource says of its device; what was found where it says nothing, or raises, as cuda.core's resources of
    host memory do. Who asks the buffer is told what it raises.
    """
    try:
        said = resource.device_id
    except Exception:
        return found
    return integer(said, "device_id of the memory resource")


cpdef Buffer checked_buffer(object resource, object allocated, object size):
    """What a resource written in Python returned, if it is what was asked for."""
    if not isinstance(allocated, Buffer):
        raise TypeError(f"{resource!r} must return a Buffer from allocate, not {type(allocated).__name__}")
    if allocated.size != checked_size(size, "size"):
        allocated.close()
        raise ValueError(f"{resource!r} was asked for {size} bytes and returned {allocated.size}")
    return allocated


cdef ViewHandle byte_view(Buffer buffer):
    """The buffer as an array of int8, which is what cuda.core exports it as."""
    return buffer_view(buffer, (buffer.size,), None, None, "i1", False)
