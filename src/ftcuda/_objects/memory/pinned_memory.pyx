"""Resources of pinned host memory."""

from core.memory.resource cimport MemoryKind
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.memory.resource cimport MemoryResource, make, make_plain
from ftcuda._objects.memory.size cimport checked_size

from ftcuda._objects.support.options import PinnedMemoryResourceOptions, checked, refuse_ipc


cdef class PinnedMemoryResource(MemoryResource):
    """Pinned host memory, from a stream-ordered pool where the device offers host pools.

    Elsewhere it is as from a `LegacyPinnedMemoryResource`.

    Parameters
    ----------
    options : PinnedMemoryResourceOptions or dict, optional
    """

    def __init__(self, options=None):
        options = checked(options, PinnedMemoryResourceOptions)
        refuse_ipc(options)
        cdef size_t max_size = checked_size(options.max_size, "max_size")
        device = as_device(None)
        if device.features.host_pools:
            make(self, device, MemoryKind.pinned, max_size, False)
        else:
            make_plain(self, device, MemoryKind.pinned)


cdef class LegacyPinnedMemoryResource(MemoryResource):
    """Pinned host memory by ``cuMemHostAlloc``, reachable from every device."""

    def __init__(self):
        make_plain(self, as_device(None), MemoryKind.pinned)
