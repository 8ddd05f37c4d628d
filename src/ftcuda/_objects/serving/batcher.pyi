from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from ftcuda._objects.device.device import Device
from ftcuda._objects.serving.batch import Batch
from ftcuda._objects.serving.batch_future import BatchFuture
from ftcuda._objects.serving.batcher_statistics import BatcherStatistics
from ftcuda._objects.serving.signature import Signature

class Batcher:
    def __init__(
        self,
        forward: Callable[[Batch], object],
        *,
        inputs: Signature,
        outputs: Signature,
        batch_sizes: Sequence[int] = (1, 4, 16, 64, 256),
        max_delay: float = 200e-6,
        max_queued: int = 4096,
        in_flight: int = 2,
        device: Device | int | Sequence[Device | int] | None = None,
        capture: bool = True,
        priorities: int = 1,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> None: ...
    def __call__(
        self, given: Any, *, priority: int = 0, deadline: float | None = None, timeout: float | None = None
    ) -> Any: ...
    def submit(
        self, given: Any, *, priority: int = 0, deadline: float | None = None, timeout: float | None = 0
    ) -> BatchFuture: ...
    def submit_many(
        self, given: Any, *, priority: int = 0, deadline: float | None = None, timeout: float | None = 0
    ) -> BatchFuture: ...
    def drain(self, timeout: float | None = None) -> None: ...
    def close(self) -> None: ...
    @property
    def is_closed(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    @property
    def devices(self) -> tuple[Device, ...]: ...
    @property
    def queued(self) -> int: ...
    @property
    def statistics(self) -> BatcherStatistics: ...
