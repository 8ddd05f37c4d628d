"""Memory that graphs allocate."""

from libc.stdint cimport uint64_t

cimport core.memory.buffer as buffers
cimport core.memory.resource as core
cimport core.stream.stream as streams
from core.device.device cimport Context
from core.memory.graph_pool cimport get_attribute, reset_attribute, trim
from core.sync.reason cimport Status
from core.sync.ref cimport Ref
from ftcuda._objects.device.device_handle cimport DeviceHandle, as_device
from ftcuda._objects.memory.resource cimport MemoryResource, not_made
from ftcuda._objects.memory.size cimport checked_size
from ftcuda._objects.stream.stream cimport Stream, as_stream
from ftcuda._objects.support.raising cimport check, raise_status

from ftcuda._objects.support.handles import checked_handle
from ftcuda._objects.support.options import integer


cdef class GraphMemoryResource(MemoryResource):
    """Memory that a graph allocates: where the builder captures it, in each launch of the graph.

    A buffer has one address for as long as there is the graph, and memory behind it from its allocation in a launch on.
    `Buffer.close` in the builder that builds makes the graph free it there, in each launch; that is how to use it.

    What the graph does not free is the program's between the launches. It must not be allocated twice: complete such a
    graph with `auto_free_on_launch`, or launch it once. It is freed when the buffer is closed and the builder, the
    graphs that it made and all their launches are over. See docs/guide/graphs.md.

    Parameters
    ----------
    device_id : int or Device

    Raises
    ------
    NotSupportedError
        Where the device has no pools, or the driver is older than CUDA 11.4.
    """

    def __init__(self, device_id):
        cdef Ref[core.MemoryResource] made
        cdef Status status
        cdef DeviceHandle device = as_device(device_id)
        cdef Context* context = device.context_of()
        not_made(self)
        with nogil:
            status = core.MemoryResource.for_graphs(context[0], made)
        check(status, "use the memory of graphs on", device)
        self._resource = made.detach()

    def allocate(self, size, *, stream):
        """Makes the graph under construction allocate a buffer.

        Parameters
        ----------
        size : int
            Bytes.
        stream : GraphBuilder
            That builds, and not the body of a conditional node. What is captured after this may use the buffer.

        Returns
        -------
        Buffer
            Ordinary work may use it after a launch of the graph.

        Thread safety: atomic. Stream order: a submission.

        Raises
        ------
        RuntimeError
            Where `stream` is no graph builder that builds.
        """
        return self.allocate_for(size, as_stream(stream), self)

    def deallocate(self, ptr, size, *, stream):
        """Makes the graph under construction free what it has allocated, as `Buffer.close` does.

        Parameters
        ----------
        ptr : int or CUdeviceptr
            The address of a buffer that was allocated in the same graph. It is closed by this.
        size : int
            Not needed.
        stream : GraphBuilder

        Thread safety: atomic. Stream order: a submission.
        """
        cdef Status status
        cdef uint64_t pointer = checked_handle(ptr, "ptr")
        cdef Stream freeing = as_stream(stream)
        cdef streams.Stream* core_stream = freeing.on(&self.opened().context())
        checked_size(size, "size")
        with nogil:
            status = buffers.Buffer.close_in_graph_at(core_stream[0], pointer)
        if not status.ok():
            raise_status(status, "free", f"memory at {pointer:#x} of a graph", (("the stream", freeing),))

    def close(self):
        """Does nothing: what graphs have is the device's. Thread safety: atomic."""

    def trim(self, bytes_to_keep=0):
        """Gives what no graph uses back to the system. Thread safety: shared.

        Parameters
        ----------
        bytes_to_keep : int
            Zero: the driver knows no other.
        """
        cdef Status status
        cdef Context* context = &self.opened().context()
        if checked_size(bytes_to_keep, "bytes_to_keep") != 0:
            raise ValueError("the driver keeps nothing back of the memory of graphs: bytes_to_keep must be 0")
        with nogil:
            status = trim(context[0])
        check(status, "trim", self)

    @property
    def attributes(self):
        """How much memory the graphs of the device have. Thread safety: atomic."""
        return GraphMemoryResourceAttributes(self)


# CUgraphMem_attribute, cuda.h 13.0.
cdef enum:
    USED, USED_HIGH, RESERVED, RESERVED_HIGH


class GraphMemoryResourceAttributes:
    """How much memory the graphs of a device have, in bytes, by cuda.core's names; reading one asks the driver.

    What is used lies behind the addresses of graphs; what is reserved is kept for that. The `_high` ones are the most
    since they were set: to 0, which begins again at what there is now.
    """

    __slots__ = ("_resource",)

    def __init__(self, resource):
        self._resource = resource

    @property
    def used_mem_current(self):
        """Bytes behind the addresses of graphs. Thread safety: atomic."""
        return get(self._resource, USED)

    @property
    def used_mem_high(self):
        """The most of that. Thread safety: atomic."""
        return get(self._resource, USED_HIGH)

    @used_mem_high.setter
    def used_mem_high(self, value):
        reset(self._resource, USED_HIGH, value)

    @property
    def reserved_mem_current(self):
        """Bytes that are kept for graphs. Thread safety: atomic."""
        return get(self._resource, RESERVED)

    @property
    def reserved_mem_high(self):
        """The most of that. Thread safety: atomic."""
        return get(self._resource, RESERVED_HIGH)

    @reserved_mem_high.setter
    def reserved_mem_high(self, value):
        reset(self._resource, RESERVED_HIGH, value)

    def __repr__(self):
        return f"<GraphMemoryResourceAttributes of {self._resource!r}>"


cdef object get(GraphMemoryResource resource, int attribute):
    cdef Status status
    cdef uint64_t value = 0
    cdef Context* context = &resource.opened().context()
    with nogil:
        status = get_attribute(context[0], attribute, value)
    check(status, "ask for an attribute of", resource)
    return value


cdef int reset(GraphMemoryResource resource, int attribute, object value) except -1:
    cdef Status status
    cdef Context* context = &resource.opened().context()
    if integer(value, "a high watermark") != 0:
        raise ValueError("a high watermark can be set to 0 alone, which begins again at what there is now")
    with nogil:
        status = reset_attribute(context[0], attribute)
    check(status, "set an attribute of", resource)
    return 0
