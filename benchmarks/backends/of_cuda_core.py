"""The cases by cuda.core."""

import ctypes
import threading
from itertools import pairwise

import cuda.core
import numpy as np

from benchmarks.backends import NODES, WEIGHT, WIDTHS, Counting, bursts, timed, wrong

try:
    from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
except ImportError:  # before 1.0
    from cuda.core.experimental import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch


class Backend:
    version = cuda.core.__version__

    def __init__(self, image: bytes) -> None:
        self.device = Device(0)
        self.device.set_current()
        self.code = ObjectCode.from_cubin(image)
        self.nothing, self.dense = self.code.get_kernel("nothing"), self.code.get_kernel("dense")
        self.count = self.code.get_kernel("count")
        self.one, self.pinned = LaunchConfig(grid=1, block=1), LegacyPinnedMemoryResource()
        stream = self.device.create_stream()
        self.x = self.device.allocate(4096, stream=stream)
        self.layers = [
            (self._filled(inputs * outputs, WEIGHT, stream), self._filled(outputs, 0, stream))
            for inputs, outputs in pairwise(WIDTHS)
        ]
        self.counting = None  # made by the first thread that wants it: not every version has graphs
        self.lock = threading.Lock()  # cuda.core leaves to its callers what the driver demands of a shared graph
        stream.sync()

    def _filled(self, count, value, stream):
        staging = self.pinned.allocate(4 * count, stream=stream)
        floats(staging)[:] = [value] * count
        buffer = self.device.allocate(4 * count, stream=stream)
        staging.copy_to(buffer, stream=stream)
        stream.sync()
        return buffer

    def _stream(self):
        device = Device(0)
        device.set_current()
        return device.create_stream()

    def launch(self, index):
        stream, n, a = self._stream(), np.int32(0), np.float32(2)

        def repeat(count, stream, one, nothing, n, a, x):
            for _ in range(count):
                launch(stream, one, nothing, n, a, x, x)

        return bursts(stream.sync, repeat, stream, self.one, self.nothing, n, a, self.x)

    def allocate(self, index):
        stream = self._stream()

        def repeat(count, device, stream):
            for _ in range(count):
                device.allocate(65536, stream=stream).close(stream)

        return bursts(stream.sync, repeat, self.device, stream)

    def record(self, index):
        stream = self._stream()
        event = stream.record()

        def repeat(count, stream, event):
            for _ in range(count):
                stream.record(event)

        return bursts(stream.sync, repeat, stream, event)

    def worker(self, index):
        stream = self._stream()
        return timed(request, stream, stream.sync, *self._operands(stream))

    def _operands(self, stream):
        activations = [self.device.allocate(4 * width, stream=stream) for width in WIDTHS]
        source = self.pinned.allocate(4 * WIDTHS[0], stream=stream)
        target = self.pinned.allocate(4 * WIDTHS[-1], stream=stream)
        steps = [
            (
                LaunchConfig(grid=(outputs + 7) // 8, block=256),
                (np.int32(WIDTHS[layer]), np.int32(outputs), np.int32(layer < 2), *self.layers[layer]),
                activations[layer : layer + 2],
            )
            for layer, outputs in enumerate(WIDTHS[1:])
        ]
        return source, activations[0], self.dense, steps, activations[-1], target

    def graph(self, index):
        stream = self._stream()
        counting = CountingGraph(self, stream)

        def repeat(count, launch, stream):
            for _ in range(count):
                launch(stream)

        return Counting(counting, stream.sync, repeat, counting.graph.launch, stream)

    def shared_graph(self, index):
        stream = self._stream()
        with self.lock:
            self.counting = self.counting or CountingGraph(self, stream)

        def repeat(count, lock, launch, stream):
            for _ in range(count):
                with lock:
                    launch(stream)

        return Counting(self.counting, stream.sync, repeat, self.lock, self.counting.graph.launch, stream)

    def worker_graph(self, index):
        stream = self._stream()
        operands = self._operands(stream)
        pixels, answer = floats(operands[0]), floats(operands[-1])
        pixels[:] = [0] * WIDTHS[0]
        stream.sync()
        builder = self.device.create_graph_builder().begin_building()
        request(builder.stream, builder.end_building, *operands)

        def ask(pixels, answer, launch, stream, operands):  # which a graph does not keep
            pixels[0] += 1
            launch(stream)
            stream.sync()
            if 8 * answer[-1] != pixels[0]:
                raise wrong(pixels, answer)

        return timed(ask, pixels, answer, builder.complete().launch, stream, operands)


def request(stream, end, source, first, dense, steps, last, target):
    """One of the worker's, to a stream or to a builder's, and what ends it there."""
    source.copy_to(first, stream=stream)
    for config, arguments, pair in steps:
        launch(stream, config, dense, *arguments, *pair)
    last.copy_to(target, stream=stream)
    end()


def floats(buffer):
    """The memory of a pinned buffer, as numbers of ctypes."""
    return (ctypes.c_float * (buffer.size // 4)).from_address(int(buffer.handle))


class CountingGraph:
    """A graph of kernels that count themselves, for `Counting`."""

    def __init__(self, backend, stream) -> None:
        self._stream, self._read = stream, backend.pinned.allocate(4, stream=stream)
        self._counter = backend._filled(1, 0, stream)
        builder = backend.device.create_graph_builder().begin_building()
        for _ in range(NODES):
            launch(builder.stream, backend.one, backend.count, self._counter)
        self.graph = builder.end_building().complete()

    def read_counter(self):
        self._counter.copy_to(self._read, stream=self._stream)
        self._stream.sync()
        return ctypes.c_uint.from_address(int(self._read.handle)).value
