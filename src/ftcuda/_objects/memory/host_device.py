"""Device memory and the pinned memory that feeds it."""

from typing import SupportsIndex

from ftcuda._objects.device.device_handle import as_device
from ftcuda._objects.memory.buffer import Buffer, checked_buffer
from ftcuda._objects.memory.pinned_memory import LegacyPinnedMemoryResource
from ftcuda._objects.memory.resource import MemoryResource


class HostDeviceBuffer:
    """A device buffer and pinned host memory of the same size, which are freed together after the work that uses them.

    A context manager that closes at the end.

    Parameters
    ----------
    size : int
        Bytes of each.
    stream : Stream, optional
        The device memory may be used in this stream's order from here on.
    device : Device or int, optional
    device_resource, host_resource : MemoryResource, optional
        Where the memory comes from: by default the device's resource, and pinned host memory.

    Attributes
    ----------
    device_buffer : Buffer
        The device memory; to be used like any buffer. Thread safety: atomic.
    host_buffer : Buffer
        The pinned memory; to be used like any buffer. Thread safety: atomic.

    Thread safety: atomic.
    """

    __slots__ = ("__weakref__", "device_buffer", "host_buffer")

    def __init__(
        self,
        size: int,
        *,
        stream: object = None,
        device: SupportsIndex | None = None,
        device_resource: MemoryResource | None = None,
        host_resource: MemoryResource | None = None,
    ) -> None:
        if hasattr(self, "host_buffer"):
            raise TypeError("a HostDeviceBuffer is constant: make another one")
        if device_resource is None:
            device_resource = as_device(device).memory_resource
        if host_resource is None:
            host_resource = LegacyPinnedMemoryResource()
        self.host_buffer: Buffer = checked_buffer(host_resource, host_resource.allocate(size, stream=stream), size)
        if not self.host_buffer.is_host_accessible:
            self.host_buffer.close()
            raise ValueError(f"host_resource must give memory that the host reaches, which {host_resource} does not")
        try:
            allocated = device_resource.allocate(size, stream=stream)
            self.device_buffer: Buffer = checked_buffer(device_resource, allocated, size)
        except BaseException:
            self.host_buffer.close()
            raise

    @property
    def size(self) -> int:
        """Bytes of each of the two. Thread safety: atomic."""
        return self.device_buffer.size

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called. Thread safety: atomic."""
        return self.device_buffer.is_closed

    def to_device(self, *, stream: object) -> Buffer:
        """Copies host to device memory, and returns the device buffer.

        Thread safety: atomic. Stream order: a submission; the copy is asynchronous.
        """
        return self.host_buffer.copy_to(self.device_buffer, stream=stream)

    def to_host(self, *, stream: object) -> Buffer:
        """Copies device to host memory, and returns the host buffer, which has the bytes once the stream gets there.

        Thread safety: atomic. Stream order: a submission; the copy is asynchronous.
        """
        return self.device_buffer.copy_to(self.host_buffer, stream=stream)

    def close(self, stream: object = None) -> None:
        """Frees both after all work that was submitted with them. Idempotent.

        Views of the host memory, such as numpy arrays, stay good, and keep it until the last of them has gone.

        Thread safety: atomic.
        """
        self.host_buffer.close(stream)
        self.device_buffer.close(stream)

    def __enter__(self) -> "HostDeviceBuffer":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<HostDeviceBuffer {self.device_buffer} {self.host_buffer}>"
