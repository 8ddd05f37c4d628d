"""Resources that wrap another one."""

from ftcuda._objects.memory.resource cimport MemoryResource

cdef enum: DEEPEST = 100  # wrappers ask each other, and end with each other, on the stack


cdef class WrappedMemoryResource(MemoryResource):
    """A resource that allocates from another one. What it does not do itself, it asks that one. Abstract."""

    def __init__(self, upstream):
        cdef int depth = 1
        if self._upstream is not None:
            raise TypeError("a memory resource is constant: make another one")
        if not callable(getattr(upstream, "allocate", None)):
            raise TypeError(f"upstream must be a memory resource, not {type(upstream).__name__}")
        if type(self) is WrappedMemoryResource:
            raise TypeError("WrappedMemoryResource is abstract: use one of its subclasses in ftcuda")
        if isinstance(upstream, WrappedMemoryResource):
            depth += (<WrappedMemoryResource>upstream)._depth
        if depth > DEEPEST:
            raise ValueError(f"upstream is wrapped {DEEPEST} times already")
        self._depth = depth
        self._upstream = upstream

    @property
    def upstream(self):
        """Where the memory comes from. Thread safety: atomic."""
        return self._upstream

    def allocate(self, size, *, stream=None):
        """Allocates a buffer from `upstream`; its ``memory_resource`` is this one. See `MemoryResource.allocate`.

        Thread safety: shared.
        """
        return self.allocate_for(size, stream, self)

    def close(self):
        """Closes `upstream`. Thread safety: atomic."""
        self._upstream.close()

    @property
    def is_closed(self):
        """Whether `upstream` is closed. Thread safety: atomic."""
        return self._upstream.is_closed

    @property
    def device(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.device

    @property
    def device_id(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.device_id

    @property
    def is_device_accessible(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_device_accessible

    @property
    def is_host_accessible(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_host_accessible

    @property
    def is_managed(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_managed

    @property
    def is_stream_ordered(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_stream_ordered

    @property
    def is_handle_owned(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.is_handle_owned

    @property
    def handle(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.handle

    @property
    def attributes(self):
        """As of `upstream`. Thread safety: atomic."""
        return self._upstream.attributes

    def trim(self, bytes_to_keep=0):
        """Trims `upstream`. Thread safety: atomic."""
        self._upstream.trim(bytes_to_keep)

    def __repr__(self):
        return f"<{type(self).__name__} over {self._upstream!r}>"
