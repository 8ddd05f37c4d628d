import traceback
from typing import NamedTuple

from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.resource import MemoryResource
from ftcuda._objects.memory.wrapped import WrappedMemoryResource

class LiveAllocation(NamedTuple):
    buffer: Buffer
    size: int
    stack: traceback.StackSummary | None

class TrackingMemoryResource(WrappedMemoryResource):
    def __init__(
        self, upstream: MemoryResource, *, capture_stacks: bool = True, report_at_exit: bool = False
    ) -> None: ...
    @property
    def live_allocations(self) -> list[LiveAllocation]: ...
    def report(self) -> str: ...
