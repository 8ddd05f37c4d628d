"""ftcuda's batcher."""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

import ftcuda
from benchmarks.serving.loops import LIMIT
from benchmarks.serving.model import Model, kernel_of
from ftcuda import Device, LaunchConfig, ObjectCode, launch, make_immortal
from ftcuda.serving import Batcher

BLOCK = 256  # threads


class Perceptron:
    """The model on a device; any number of streams compute by it."""

    def __init__(self, model: Model, image: bytes) -> None:
        self.device = Device(0)
        self._widths = model.widths
        load = ObjectCode.from_ptx if ftcuda.driver_info().simulated else ObjectCode.from_cubin
        code = load(image)
        self._kernels = {name: code.get_kernel(name) for name in ("few_rows", "many_rows")}
        stream = self.device.create_stream()
        self._layers = [tuple(self._copied(each, stream) for each in layer) for layer in model.layers]
        self._kept = []
        stream.sync()

    def _copied(self, array, stream):
        buffer = self.device.allocate(array.nbytes, stream=stream)
        buffer.copy_from(array, stream=stream)
        return buffer

    def prepared(self, rows: int, x, y):
        """For so many rows from x to y: what submits the kernels to a stream. It has hidden layers of its own."""
        stream = self.device.create_stream()
        hidden = [self.device.allocate(4 * rows * width, stream=stream) for width in self._widths[1:-1]]
        stream.sync()
        self._kept += hidden
        values = [x, *hidden, y]
        bound = []
        for number, (inputs, outputs) in enumerate(pairwise(self._widths)):
            name, grid = kernel_of(rows, outputs)
            is_hidden = number < len(self._layers) - 1
            arguments = (rows, inputs, outputs, is_hidden, *self._layers[number], *values[number : number + 2])
            bound.append((LaunchConfig(grid=grid, block=BLOCK), self._kernels[name], *arguments))

        def submit(stream):
            for each in bound:
                launch(stream, *each)

        return submit

    def forward(self, batch) -> None:
        self.prepared(batch.size, batch["x"], batch["y"])(batch.stream)


class Backend:
    version = ftcuda.__version__
    cases = ("submit_many", "submit", "call")

    def __init__(self, model: Model, folder: Path, options: dict) -> None:
        perceptron = Perceptron(model, (folder / "model.image").read_bytes())
        self._batcher = Batcher(
            perceptron.forward,
            inputs={"x": (np.float32, model.widths[:1])}, outputs={"y": (np.float32, model.widths[-1:])},
            batch_sizes=options["batch_sizes"], max_delay=options["max_delay"], max_queued=options["max_queued"],
            in_flight=options["in_flight"], device=perceptron.device, progress=False,
        )  # fmt: skip
        make_immortal(self._batcher)

    def of(self, case: str, index: int):
        """What a thread asks: `submit` and `submit_many` return futures."""
        if case == "call":
            return self._batcher
        if case == "load":
            return partial(self._batcher.submit, timeout=LIMIT)
        return getattr(self._batcher, case)

    def figures(self) -> dict:
        """So far: batches, their rows, and their seconds."""
        has = self._batcher.statistics
        return {"batches": has.batches, "batch_rows": has.batch_rows, "batch_seconds": has.device.seconds}

    def close(self) -> None:
        self._batcher.drain(LIMIT)
        self._batcher.close()
