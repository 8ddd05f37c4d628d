import traceback
from typing import NamedTuple

from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.resource import MemoryResource

class MemoryStatistics(NamedTuple):
    current_bytes: int
    current_count: int
    peak_bytes: int
    peak_count: int
    total_bytes: int
    total_count: int

class LiveAllocation(NamedTuple):
    buffer: Buffer
    size: int
    stack: traceback.StackSummary | None

class WrappedMemoryResource(MemoryResource):
    @property
    def upstream(self) -> MemoryResource: ...

class AccountingMemoryResource(WrappedMemoryResource):
    @property
    def statistics(self) -> MemoryStatistics: ...

class StatisticsMemoryResource(AccountingMemoryResource):
    def __init__(self, upstream: MemoryResource) -> None: ...

class LimitingMemoryResource(AccountingMemoryResource):
    def __init__(self, upstream: MemoryResource, allocation_limit: int) -> None: ...
    @property
    def allocation_limit(self) -> int: ...

class TrackingMemoryResource(WrappedMemoryResource):
    def __init__(
        self, upstream: MemoryResource, *, capture_stacks: bool = True, report_at_exit: bool = False
    ) -> None: ...
    @property
    def live_allocations(self) -> list[LiveAllocation]: ...
    def report(self) -> str: ...
