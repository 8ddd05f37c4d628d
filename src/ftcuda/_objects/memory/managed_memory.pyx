"""The resource of managed memory."""

from core.memory.resource cimport MemoryKind
from ftcuda._objects.device.device_handle cimport as_device
from ftcuda._objects.memory.resource cimport MemoryResource, make, make_plain

from ftcuda._objects.support.options import ManagedMemoryResourceOptions, checked
from ftcuda.errors import NotSupportedError


cdef class ManagedMemoryResource(MemoryResource):
    """Managed memory, from a stream-ordered pool where the device offers it, else by ``cuMemAllocManaged``.

    Parameters
    ----------
    options : ManagedMemoryResourceOptions or dict, optional
    """

    def __init__(self, options=None):
        options = checked(options, ManagedMemoryResourceOptions)
        device = as_device(options.preferred_location)
        if not device.features.managed_memory:
            raise NotSupportedError(
                f"cannot make managed memory on {device}: {device.features.why('managed_memory')} is 0"
            )
        if device.features.managed_pools:
            make(self, device, MemoryKind.managed, 0, False)
        else:
            make_plain(self, device, MemoryKind.managed)
