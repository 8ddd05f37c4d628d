from typing import SupportsIndex

from ftcuda._objects.device.device import Device

def as_device(device: SupportsIndex | None) -> Device: ...
