from collections.abc import Callable
from typing import Any

from ftcuda._objects.memory.buffer import Buffer
from ftcuda._objects.memory.resource import MemoryResource

class ExternalMemoryResource(MemoryResource):
    def __init__(
        self,
        allocate: Callable[..., Any],
        deallocate: Callable[..., object] | None = None,
        *,
        device_id: int = 0,
        is_device_accessible: bool = True,
        is_host_accessible: bool = False,
        is_stream_ordered: bool = False,
    ) -> None: ...
    def allocate(self, size: int, *, stream: object = None) -> Buffer: ...
    def deallocate(self, ptr: int, size: int, *, stream: object) -> None: ...
    @property
    def device_id(self) -> int: ...
    @property
    def is_device_accessible(self) -> bool: ...
    @property
    def is_host_accessible(self) -> bool: ...
    @property
    def is_stream_ordered(self) -> bool: ...
