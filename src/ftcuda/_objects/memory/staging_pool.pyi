from typing import NamedTuple

from ftcuda._objects.device.device import Device
from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.resource import MemoryResource

class StagingStatistics(NamedTuple):
    in_use_bytes: int
    in_use_count: int
    idle_bytes: int
    idle_count: int
    waiting: int

class StagingPool(MemoryResource):
    def __init__(self, device: Device | int | None, size: int) -> None: ...
    @property
    def size(self) -> int: ...
    def lease(self, size: int, *, timeout: float | None = None) -> Buffer: ...
    @property
    def statistics(self) -> StagingStatistics: ...
