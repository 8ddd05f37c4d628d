"""Resources of device memory."""

from core.memory.resource cimport MemoryKind
from ftcuda._objects.device.device_handle cimport DeviceHandle, as_device
from ftcuda._objects.memory.resource cimport MemoryResource, make, make_plain
from ftcuda._objects.memory.size cimport checked_size

from ftcuda._objects.support.options import DeviceMemoryResourceOptions, checked, refuse_ipc
from ftcuda.errors import NotSupportedError


cdef class DeviceMemoryResource(MemoryResource):
    """Device memory from a stream-ordered pool.

    Parameters
    ----------
    device_id : int or Device, optional
    options : DeviceMemoryResourceOptions or dict, optional
        None takes the device's default pool; anything else makes a pool.

    Raises
    ------
    NotSupportedError
        Where the device has no pools (Windows TCC, drivers before 11.2):
        :class:`SynchronousMemoryResource` works there.
    """

    def __init__(self, device_id=None, options=None):
        device = as_device(device_id)
        if not device.features.memory_pools:
            raise NotSupportedError(
                f"cannot make a memory pool on {device}: it has none ({device.features.why('memory_pools')}); "
                "use SynchronousMemoryResource, as Device.allocate does"
            )
        if options is None:
            make(self, device, MemoryKind.device, 0, True)
        else:
            options = checked(options, DeviceMemoryResourceOptions)
            refuse_ipc(options)
            make(self, device, MemoryKind.device, checked_size(options.max_size, "max_size"), False)


cdef class SynchronousMemoryResource(MemoryResource):
    """Device memory by ``cuMemAlloc`` and ``cuMemFree``, which every device has.

    A free waits for the streams that used the buffer, so that nothing is freed under running work.

    Parameters
    ----------
    device_id : int or Device, optional
    """

    def __init__(self, device_id=None):
        make_plain(self, as_device(device_id), MemoryKind.device)


cdef MemoryResource uncached(DeviceHandle device):
    """The device's pool, or plain allocations without one."""
    return DeviceMemoryResource(device) if device.features.memory_pools else SynchronousMemoryResource(device)
