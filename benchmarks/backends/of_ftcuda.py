"""The cases by ftcuda."""

from itertools import pairwise

import numpy as np

import ftcuda
from benchmarks.backends import NODES, WEIGHT, WIDTHS, Counting, bursts, timed, wrong
from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch, make_immortal
from ftcuda.graph import GraphCompleteOptions

MOST = 64  # launches of one graph at once


class Backend:
    version = ftcuda.__version__

    def __init__(self, image: bytes) -> None:
        self.device = Device(0)
        load = ObjectCode.from_ptx if ftcuda.driver_info().simulated else ObjectCode.from_cubin
        self.code = load(image)
        self.nothing, self.dense = self.code.get_kernel("nothing"), self.code.get_kernel("dense")
        self.count = self.code.get_kernel("count")
        self.count_atomically = self.code.get_kernel("count_atomically")
        self.one = LaunchConfig(grid=1, block=1)
        self.pinned = LegacyPinnedMemoryResource()
        stream = self.device.create_stream()
        self.x = self._zeros(4096, stream)
        self.bound = self.nothing.bind(self.one, 0, 2.0, self.x, self.x)
        self.layers = [
            (self._zeros(4 * inputs * outputs, stream), self._zeros(4 * outputs, stream))
            for inputs, outputs in pairwise(WIDTHS)
        ]
        for weights, _ in self.layers:
            weights.fill(np.float32(WEIGHT), stream=stream)
        self.counting = CountingGraph(self, self.count, stream)
        self.overlapping = CountingGraph(self, self.count_atomically, stream, max_concurrency=MOST)
        make_immortal(self.device, self.device.memory_resource.upstream, self.one, self.nothing, self.x, self.bound)
        stream.sync()

    def _zeros(self, size, stream):
        buffer = self.device.allocate(size, stream=stream)
        buffer.fill(0, stream=stream)
        return buffer

    def launch(self, index):
        stream = self.device.create_stream()

        def repeat(count, stream, one, nothing, x):
            for _ in range(count):
                launch(stream, one, nothing, 0, 2.0, x, x)

        return bursts(stream.sync, repeat, stream, self.one, self.nothing, self.x)

    def bound_launch(self, index):
        stream = self.device.create_stream()

        def repeat(count, launch, stream):
            for _ in range(count):
                launch(stream)

        return bursts(stream.sync, repeat, self.bound.launch, stream)

    def allocate(self, index):
        return self._allocations(self.device)

    def allocate_from_the_pool(self, index):
        return self._allocations(self.device.memory_resource.upstream)

    def _allocations(self, source):
        stream = self.device.create_stream()

        def repeat(count, source, stream):
            for _ in range(count):
                source.allocate(65536, stream=stream).close()

        return bursts(stream.sync, repeat, source, stream)

    def record(self, index):
        stream = self.device.create_stream()
        event = stream.record()

        def repeat(count, stream, event):
            for _ in range(count):
                stream.record(event)

        return bursts(stream.sync, repeat, stream, event)

    def is_done(self, index):
        stream = self.device.create_stream()
        event = stream.record()
        stream.sync()

        def repeat(count, event):
            for _ in range(count):
                _ = event.is_done

        return bursts(stream.sync, repeat, event)

    def wait(self, index):
        stream = self.device.create_stream()
        event = stream.record()

        def repeat(count, stream, event):
            for _ in range(count):
                stream.wait(event)

        return bursts(stream.sync, repeat, stream, event)

    def _copy(self, size):
        stream, source = self.device.create_stream(), self.pinned.allocate(size)
        target = self._zeros(size, stream)

        def repeat(count, target, source, stream):
            for _ in range(count):
                target.copy_from(source, stream=stream)

        return bursts(stream.sync, repeat, target, source, stream)

    def copy_256_b(self, index):
        return self._copy(256)

    def copy_64_kib(self, index):
        return self._copy(65536)

    def worker(self, index):
        stream = self.device.create_stream()
        return timed(request, stream, stream.sync, *self._operands(stream))

    def _operands(self, stream):
        activations = [self._zeros(4 * width, stream) for width in WIDTHS]
        source, target = self.pinned.allocate(4 * WIDTHS[0]), self.pinned.allocate(4 * WIDTHS[-1])
        launches = [
            self.dense.bind(
                LaunchConfig(grid=(outputs + 7) // 8, block=256),
                *(WIDTHS[layer], outputs, layer < 2, *self.layers[layer], *activations[layer : layer + 2]),
            ).launch
            for layer, outputs in enumerate(WIDTHS[1:])
        ]
        return source, activations[0], launches, activations[-1], target

    def graph(self, index):
        stream = self.device.create_stream()
        return self._graph_launches(CountingGraph(self, self.count, stream), stream)

    def shared_graph(self, index):
        return self._graph_launches(self.counting, self.device.create_stream())

    def overlapping_graph(self, index):
        return self._graph_launches(self.overlapping, self.device.create_stream())

    def _graph_launches(self, counting, stream):
        def repeat(count, launch, stream):
            for _ in range(count):
                launch(stream)

        return Counting(counting, stream.sync, repeat, counting.graph.launch, stream)

    def worker_graph(self, index):
        stream = self.device.create_stream()
        source, *others, target = self._operands(stream)
        pixels, answer = memoryview(source).cast("f"), memoryview(target).cast("f")
        for pixel in range(WIDTHS[0]):
            pixels[pixel] = 0
        builder = self.device.create_graph_builder().begin_building()
        request(builder, builder.end_building, source, *others, target)

        def ask(pixels, answer, launch, stream):
            pixels[0] += 1
            launch(stream)
            stream.sync()
            if 8 * answer[-1] != pixels[0]:
                raise wrong(pixels, answer)

        return timed(ask, pixels, answer, builder.complete().launch, stream)


def request(stream, end, source, first, launches, last, target):
    """One of the worker's, to a stream or to a builder, and what ends it there."""
    first.copy_from(source, stream=stream)
    for dense in launches:
        dense(stream)
    last.copy_to(target, stream=stream)
    end()


class CountingGraph:
    """A graph of kernels that count themselves, for `Counting`."""

    def __init__(self, backend, kernel, stream, max_concurrency=1) -> None:
        self._stream, self._read = stream, backend.pinned.allocate(4)
        self._counter = backend._zeros(4, stream)
        builder = backend.device.create_graph_builder().begin_building()
        for _ in range(NODES):
            launch(builder, backend.one, kernel, self._counter)
        self.graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=max_concurrency))

    def read_counter(self):
        self._counter.copy_to(self._read, stream=self._stream)
        self._stream.sync()
        return int(np.frombuffer(self._read, np.uint32)[0])
