from ftcuda._objects.device.device import Device
from ftcuda._objects.memory.resource import MemoryResource
from ftcuda._objects.support.options import DeviceMemoryResourceOptions

class DeviceMemoryResource(MemoryResource):
    def __init__(
        self,
        device_id: Device | int | None = None,
        options: DeviceMemoryResourceOptions | dict[str, object] | None = None,
    ) -> None: ...

class SynchronousMemoryResource(MemoryResource):
    def __init__(self, device_id: Device | int | None = None) -> None: ...
