"""The batcher in Python, above ftcuda's graphs of the same kernels."""

import numpy as np

import ftcuda
from benchmarks.serving.model import Model
from benchmarks.serving.of_ftcuda import Perceptron
from benchmarks.serving.queue_batcher import QueueBackend, QueueBatcher
from ftcuda import LegacyPinnedMemoryResource


class Computer:
    """A stream, pinned memory, and a graph for each size."""

    def __init__(self, perceptron: Perceptron, model: Model, sizes) -> None:
        self._sizes, self._stream = sizes, perceptron.device.create_stream()
        pinned = LegacyPinnedMemoryResource()
        shapes = [(sizes[-1], width) for width in (model.widths[0], model.widths[-1])]
        self._buffers = [pinned.allocate(4 * size * width) for size, width in shapes]
        self._x, self._y = (
            np.frombuffer(buffer, np.float32).reshape(shape)
            for buffer, shape in zip(self._buffers, shapes, strict=True)
        )
        self._graphs = {size: self._graph(perceptron, size) for size in sizes}

    def _graph(self, perceptron, size):
        device, stream = perceptron.device, self._stream
        x, y = (device.allocate(size * array.nbytes // len(array), stream=stream) for array in (self._x, self._y))
        submit = perceptron.prepared(size, x, y)
        builder = device.create_graph_builder().begin_building()
        x.copy_from(self._x[:size], stream=builder)
        submit(builder)
        y.copy_to(self._y[:size], stream=builder)
        graph = builder.end_building().complete()
        graph.launch(stream)
        stream.sync()
        return graph

    def __call__(self, rows):
        count = len(rows)
        self._x[:count] = rows
        self._graphs[next(size for size in self._sizes if size >= count)].launch(self._stream)
        self._stream.sync()
        return self._y[:count]


class Backend(QueueBackend):
    version = ftcuda.__version__
    cases = ("submit_many", "submit", "call")

    def __init__(self, model: Model, folder, options: dict) -> None:
        sizes = options["batch_sizes"]
        perceptron = Perceptron(model, (folder / "model.image").read_bytes())
        computers = [Computer(perceptron, model, sizes) for _ in range(options["in_flight"])]
        self._batcher = QueueBatcher(computers, sizes[-1])
