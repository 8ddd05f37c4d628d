from collections.abc import Callable

from ftcuda._objects.device.device import Device
from ftcuda._objects.serving.batch import Batch

class Lane:
    def compute(self, forward: Callable[[Batch], object], device: Device, batches: dict[int, Batch]) -> None: ...
