from typing import NamedTuple

from ftcuda._objects.memory.resource import MemoryResource
from ftcuda._objects.memory.wrapped import WrappedMemoryResource

class MemoryStatistics(NamedTuple):
    current_bytes: int
    current_count: int
    peak_bytes: int
    peak_count: int
    total_bytes: int
    total_count: int

class AccountingMemoryResource(WrappedMemoryResource):
    @property
    def statistics(self) -> MemoryStatistics: ...

class StatisticsMemoryResource(AccountingMemoryResource):
    def __init__(self, upstream: MemoryResource) -> None: ...

class LimitingMemoryResource(AccountingMemoryResource):
    def __init__(self, upstream: MemoryResource, allocation_limit: int) -> None: ...
    @property
    def allocation_limit(self) -> int: ...
