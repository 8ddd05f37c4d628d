from collections.abc import Sequence
from typing import SupportsIndex

class LaunchConfig:
    def __init__(
        self,
        grid: SupportsIndex | Sequence[SupportsIndex] | None = None,
        cluster: SupportsIndex | Sequence[SupportsIndex] | None = None,
        block: SupportsIndex | Sequence[SupportsIndex] | None = None,
        shmem_size: SupportsIndex | None = 0,
        is_cooperative: bool = False,
        programmatic_stream_serialization: bool = False,
    ) -> None: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def cluster(self) -> tuple[int, int, int] | None: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def shmem_size(self) -> int: ...
    @property
    def is_cooperative(self) -> bool: ...
    @property
    def programmatic_stream_serialization(self) -> bool: ...
