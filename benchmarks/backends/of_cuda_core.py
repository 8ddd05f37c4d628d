"""The cases by cuda.core."""

import ctypes
import threading
from itertools import count as numbers_from
from itertools import islice, pairwise
from typing import ClassVar

import cuda.core
import numpy as np

from benchmarks.backends import FEW_NODES, NODES, WEIGHT, WIDTHS, Counting, bursts, rebound_sum, timed, wrong

try:
    from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
except ImportError:  # before 1.0
    from cuda.core.experimental import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
try:
    from cuda.core.graph import Graph, GraphDefinition
except ImportError:
    Graph = None

ONE = np.uint32(1), np.uint32(1), np.uint32(0)  # which `add` adds up to one


class Backend:
    version = cuda.core.__version__
    # Of so many calls of others: an update of a node takes it longer with each.
    one_in: ClassVar[dict[str, int]] = {"rebound_graph": 200, "rebound_graph_of_4": 50}

    def __init__(self, image: bytes) -> None:
        self.device = Device(0)
        self.device.set_current()
        self.code = ObjectCode.from_cubin(image)
        self.nothing, self.dense = self.code.get_kernel("nothing"), self.code.get_kernel("dense")
        self.count, self.add = self.code.get_kernel("count"), self.code.get_kernel("add")
        self.one, self.pinned = LaunchConfig(grid=1, block=1), LegacyPinnedMemoryResource()
        stream = self.device.create_stream()
        self.x = self.device.allocate(4096, stream=stream)
        self.layers = [
            (self._filled(inputs * outputs, WEIGHT, stream), self._filled(outputs, 0, stream))
            for inputs, outputs in pairwise(WIDTHS)
        ]
        self.shared = None  # made by the first thread that wants it: not every version has graphs
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

    def _frozen(self, stream, kernel, *rest, kernels=NODES):
        """A graph, and what its kernels count in."""
        counter = Counter(self, stream, kernels)
        builder = self.device.create_graph_builder().begin_building()
        for _ in range(kernels):
            launch(builder.stream, self.one, kernel, counter.sums[0], *rest)
        return builder.end_building().complete(), counter

    def graph(self, index):
        stream = self._stream()
        return self._graph_launches(stream, *self._frozen(stream, self.count))

    def overlapping_graph(self, index, kernels=NODES):
        """A graph for each thread: launches of one do not overlap."""
        stream = self._stream()
        return self._graph_launches(stream, *self._frozen(stream, self.add, *ONE, kernels=kernels))

    def overlapping_graph_of_4(self, index):
        return self.overlapping_graph(index, FEW_NODES)

    def _graph_launches(self, stream, graph, counter):
        def repeat(count, launch, stream):
            for _ in range(count):
                launch(stream)

        return Counting(counter, stream.sync, repeat, graph.launch, stream)

    def shared_graph(self, index):
        stream = self._stream()
        with self.lock:
            self.shared = self.shared or self._frozen(stream, self.count)
        graph, counter = self.shared

        def repeat(count, lock, launch, stream):
            for _ in range(count):
                with lock:
                    launch(stream)

        return Counting(counter, stream.sync, repeat, self.lock, graph.launch, stream)

    if hasattr(Graph, "__getitem__"):  # since 1.2: to change single nodes of what is launched

        def rebound_graph(self, index, kernels=NODES):
            """A graph for each thread, whose nodes are changed one by one."""
            stream = self._stream()
            counter = ReboundCounter(self, stream, kernels)
            definition = GraphDefinition()
            nodes, last = [], definition
            for _ in range(kernels):
                last = last.launch(self.one, self.add, counter.sums[0], *ONE)
                nodes.append(last)
            graph = definition.instantiate()
            updates = [graph[node].update for node in nodes]

            def repeat(count, launch, stream, numbers, one, add, sums, updates, uint):
                for number in islice(numbers, count):
                    args = sums[number % 2], uint(number), uint(number + 1), uint(number + 2)
                    for update in updates:
                        update(config=one, kernel=add, args=args)
                    launch(stream)

            things = graph.launch, stream, numbers_from(), self.one, self.add, counter.sums, updates, np.uint32
            return Counting(counter, stream.sync, repeat, *things)

        def rebound_graph_of_4(self, index):
            return self.rebound_graph(index, FEW_NODES)

    def one_by_one(self, index):
        stream = self._stream()
        counter = Counter(self, stream, NODES)

        def repeat(count, stream, one, add, total, a, b, c):
            for _ in range(count * NODES):
                launch(stream, one, add, total, a, b, c)

        return Counting(counter, stream.sync, repeat, stream, self.one, self.add, counter.sums[0], *ONE)

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


class Counter:
    """Two numbers in the device's memory, for `Counting`, to which each of so many kernels adds one in each launch."""

    def __init__(self, backend, stream, kernels) -> None:
        self.sums = [backend._filled(1, 0, stream) for _ in range(2)]
        self._kernels, self._stream = kernels, stream
        self._read = [backend.pinned.allocate(4, stream=stream) for _ in range(2)]

    def expected(self, launches):
        return self._kernels * launches

    def read(self):
        for each, target in zip(self.sums, self._read, strict=True):
            each.copy_to(target, stream=self._stream)
        self._stream.sync()
        return sum(ctypes.c_uint.from_address(int(each.handle)).value for each in self._read) % 2**32


class ReboundCounter(Counter):
    def expected(self, launches):
        return rebound_sum(self._kernels, launches)
