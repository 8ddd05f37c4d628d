"""Lanes: what batches are computed in, made and tried before the first request."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any

from ftcuda._objects.device.device import Device
from ftcuda._objects.serving.batch import Batch, views
from ftcuda._objects.serving.signature import RowArray

Forward = Callable[[Batch], object]


class LaneParts:
    """What a lane is made of: a stream, memory for the largest batch, and a graph or a `Batch` for each size."""

    def __init__(
        self,
        device: Device,
        inputs: tuple[RowArray, ...],
        outputs: tuple[RowArray, ...],
        sizes: Sequence[int],
    ) -> None:
        self.device, self.sizes = device, sizes
        self.stream = device.create_stream()
        self.inputs = [self._memory(each) for each in inputs]
        self.outputs = [self._memory(each) for each in outputs]
        self._arrays = inputs, outputs
        self.graphs: list[Any] = []
        self.batches: dict[int, Batch] = {}

    def _memory(self, array: RowArray) -> Any:
        made = self.device.allocate(self.sizes[-1] * array.nbytes, stream=self.stream)
        if made.size:
            made.fill(0, stream=self.stream)
        return made

    def _batch(self, size: int, stream: Any) -> Batch:
        inputs, outputs = self._arrays
        return Batch(size, stream, self.device, views(inputs, self.inputs, size), views(outputs, self.outputs, size))

    def capture(self, forward: Forward, size: int) -> None:
        """Makes the graph for a size, and launches it twice: what it keeps after a launch may forbid the next one."""
        builder = self.device.create_graph_builder().begin_building()
        try:
            forward(self._batch(size, builder))
            graph = builder.end_building().complete()
        finally:
            builder.close()
        self.graphs.append(graph)
        graph.launch(self.stream)
        graph.launch(self.stream)
        self.stream.sync()

    def call(self, forward: Forward, size: int) -> None:
        """Makes the `Batch` for a size, and computes it once."""
        self.batches[size] = batch = self._batch(size, self.stream)
        forward(batch)
        self.stream.sync()


def start(lane: Any, forward: Forward, device: Device, batches: dict[int, Batch]) -> None:
    """Starts the thread that computes in a lane without graphs; it ends with the batcher, or with the process."""
    Thread(target=lane.compute, args=(forward, device, batches), daemon=True, name="ftcuda batcher").start()


@contextmanager
def progress_of(total: int, wanted: bool | None) -> Iterator[Callable[[], object]]:
    """Gives what is called after each step: a bar shows them where a person looks, or where it is `wanted`."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        wanted = False
    if not wanted:
        yield lambda: None
        return
    with Progress(console=Console(stderr=True, markup=False, emoji=False)) as bar:
        task = bar.add_task("warm-up", total=total)
        yield lambda: bar.advance(task)


def made_lanes(
    forward: Forward,
    device: Device,
    arrays: tuple[tuple[RowArray, ...], tuple[RowArray, ...]],
    sizes: Sequence[int],
    count: int,
    captures: bool,
    advance: Callable[[], object],
) -> list[LaneParts]:
    """Makes so many lanes, and computes every size once in each."""
    lanes = []
    for _ in range(count):
        lane = LaneParts(device, *arrays, sizes)
        for size in sizes:
            (lane.capture if captures else lane.call)(forward, size)
            advance()
        lanes.append(lane)
    return lanes
