"""The cache in front of another resource."""

from collections import namedtuple

cimport core.memory.resource as core
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.memory.device_memory cimport uncached
from ftcuda._objects.memory.resource cimport MemoryResource, not_made
from ftcuda._objects.memory.size cimport checked_size
from ftcuda._objects.support.raising cimport check, refuse_to_wait

CacheStatistics = namedtuple(
    "CacheStatistics", ("in_use_bytes", "in_use_count", "cached_bytes", "cached_count", "hits", "misses"),
    module=__name__,
)
CacheStatistics.__doc__ = (
    "Bytes and number of what is in use and of what is in store; allocations from the store and not."
)


cdef class CachingMemoryResource(MemoryResource):
    """A cache in front of another resource: what was freed is given out again without the driver.

    Device memory that was freed in a stream's order goes to the next allocation in the same stream, and to no other
    stream; pinned and managed memory to whoever allocates once the work that used it is done. Sizes are rounded up, to
    multiples of 512 bytes as far as 4 KiB and by an eighth at most beyond. What is larger than 32 MiB, what is
    allocated while its stream is captured, and device memory of default streams and of streams that others made come
    from `upstream` each time. In front of `SynchronousMemoryResource` frees no longer wait for the device.

    Parameters
    ----------
    upstream : MemoryResource, optional
        One of ftcuda's own; None takes the pool of the calling thread's current device, or plain allocations where
        there is none.
    max_cached_size : int, optional
        Bytes in store for each stream, at most. With or without it, what is in use and in store stays below the most
        that was in use, a sixteenth and 2 MiB; what is more goes back, in its stream's order. :meth:`trim` forgets the
        most.

    Attributes
    ----------
    upstream : MemoryResource

    Thread safety: atomic.
    """

    def __init__(self, MemoryResource upstream=None, *, max_cached_size=None):
        cdef Ref[core.MemoryResource] made
        cdef Status status
        cdef size_t limit = <size_t>-1 if max_cached_size is None else checked_size(max_cached_size, "max_cached_size")
        not_made(self)
        if upstream is None:
            upstream = uncached(as_device(None))
        if upstream._resource == NULL:
            raise TypeError(
                f"a cache goes in front of an allocator of ftcuda's own, not {upstream}; put that around the cache"
            )
        cdef core.MemoryResource* source = upstream._resource
        if source.is_cached():
            raise ValueError(f"{upstream} is a cache already")
        if source.staging_store() != NULL:
            raise ValueError(f"{upstream} gives its memory out again itself")
        with nogil:
            status = core.MemoryResource.cached(source[0], limit, made)
        check(status, "make a cache for", upstream)
        self.upstream = upstream
        self._resource = made.detach()

    @property
    def statistics(self):
        """What was allocated and not freed, what is in store, how many allocations came from there and how many not.

        Bytes are those of the sizes rounded up. Each number is exact; beside allocations in other threads they may be
        of moments that are a little apart.

        Returns
        -------
        CacheStatistics
            ``(in_use_bytes, in_use_count, cached_bytes, cached_count, hits, misses)``

        Thread safety: shared.
        """
        cdef core.CacheFigures figures
        cdef core.MemoryResource* resource = self.opened()
        refuse_to_wait("count what is in", self)
        with nogil:
            figures = resource.cache_figures()
        return CacheStatistics(figures.in_use_bytes, figures.in_use_count, figures.cached_bytes, figures.cached_count,
                               figures.hits, figures.misses)
