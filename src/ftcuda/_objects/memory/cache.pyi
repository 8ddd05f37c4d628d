from typing import NamedTuple

from ftcuda._objects.memory.resource import MemoryResource

class CacheStatistics(NamedTuple):
    in_use_bytes: int
    in_use_count: int
    cached_bytes: int
    cached_count: int
    hits: int
    misses: int

class CachingMemoryResource(MemoryResource):
    def __init__(self, upstream: MemoryResource | None = None, *, max_cached_size: int | None = None) -> None: ...
    @property
    def upstream(self) -> MemoryResource: ...
    @property
    def statistics(self) -> CacheStatistics: ...
