"""The cases by ftcuda."""

import asyncio
import threading
from itertools import count as numbers_from
from itertools import islice, pairwise

import numpy as np

import ftcuda
from benchmarks.backends import BURST, FEW_NODES, NODES, WEIGHT, WIDTHS, Counting, bursts, rebound_sum, timed, wrong
from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, host_launch, launch, make_immortal
from ftcuda.graph import GraphCompleteOptions, Parameter

MOST = 64  # launches of one graph at once


class Backend:
    version = ftcuda.__version__

    def __init__(self, image: bytes) -> None:
        self.device = Device(0)
        load = ObjectCode.from_ptx if ftcuda.driver_info().simulated else ObjectCode.from_cubin
        self.code = load(image)
        self.nothing, self.dense = self.code.get_kernel("nothing"), self.code.get_kernel("dense")
        self.count, self.add = self.code.get_kernel("count"), self.code.get_kernel("add")
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
        self.shared = self._frozen(stream, self.count)
        self._making, self._loop = threading.Lock(), None
        self.overlapping = {kernels: self._adding(stream, kernels, MOST) for kernels in (FEW_NODES, NODES)}
        self.rebound = {kernels: self._with_parameters(kernels) for kernels in (FEW_NODES, NODES)}
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

    def sync_round_trip(self, index):
        def repeat(count, stream, launch):
            for _ in range(count):
                launch(stream)
                stream.sync()

        return self._round_trips(repeat)

    def await_round_trip(self, index):
        """With a loop for each thread."""

        def repeat(count, stream, launch, loop):
            loop.run_until_complete(awaits(count, stream, launch))

        return self._round_trips(repeat, asyncio.new_event_loop())

    def await_in_one_loop(self, index):
        """A task for each thread, of a loop in a thread of its own."""

        def repeat(count, stream, launch, loop):
            asyncio.run_coroutine_threadsafe(awaits(count, stream, launch), loop).result()

        return self._round_trips(repeat, self._running_loop())

    def when_done_round_trip(self, index):
        def repeat(count, stream, launch, over):
            for _ in range(count):
                launch(stream)
                stream.when_done(over.release)
                over.acquire()

        return self._round_trips(repeat, threading.Semaphore(0))

    def host_launch_round_trip(self, index):
        def repeat(count, stream, launch, over):
            for _ in range(count):
                launch(stream)
                host_launch(stream, over.release)
                over.acquire()

        return self._round_trips(repeat, threading.Semaphore(0))

    def _round_trips(self, repeat, *things):
        stream = self.device.create_stream()
        counter = Counter(self, stream, 1)
        launch = self.count.bind(self.one, counter.sums[0]).launch
        return Counting(counter, stream.sync, repeat, stream, launch, *things, size=BURST)

    def _running_loop(self):
        with self._making:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            return self._loop

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

    def _captured(self, kernels, most, *arguments):
        builder = self.device.create_graph_builder().begin_building()
        for _ in range(kernels):
            launch(builder, self.one, *arguments)
        return builder.end_building().complete(GraphCompleteOptions(max_concurrency=most))

    def _frozen(self, stream, kernel, *rest, kernels=NODES, most=1):
        """A graph, and what its kernels count in."""
        counter = Counter(self, stream, kernels)
        return self._captured(kernels, most, kernel, counter.sums[0], *rest), counter

    def _adding(self, stream, kernels, most=1):
        return self._frozen(stream, self.add, 1, 1, 0, kernels=kernels, most=most)

    def _with_parameters(self, kernels):
        named = (Parameter("sum", self.x), Parameter("a", 0), Parameter("b", 0), Parameter("c", 0))
        return self._captured(kernels, MOST, self.add, *named).bind()

    def graph(self, index):
        stream = self.device.create_stream()
        return self._graph_launches(stream, *self._frozen(stream, self.count))

    def shared_graph(self, index):
        return self._graph_launches(self.device.create_stream(), *self.shared)

    def overlapping_graph(self, index, kernels=NODES):
        return self._graph_launches(self.device.create_stream(), *self.overlapping[kernels])

    def overlapping_graph_of_4(self, index):
        return self.overlapping_graph(index, FEW_NODES)

    def private_graph(self, index, kernels=NODES):
        stream = self.device.create_stream()
        return self._graph_launches(stream, *self._adding(stream, kernels))

    def private_graph_of_4(self, index):
        return self.private_graph(index, FEW_NODES)

    def _graph_launches(self, stream, graph, counter):
        def repeat(count, launch, stream):
            for _ in range(count):
                launch(stream)

        return Counting(counter, stream.sync, repeat, graph.launch, stream)

    def rebound_graph(self, index, kernels=NODES):
        stream = self.device.create_stream()
        counter = ReboundCounter(self, stream, kernels)

        def repeat(count, launch, stream, numbers, sums):
            for number in islice(numbers, count):
                launch(stream, sum=sums[number % 2], a=number, b=number + 1, c=number + 2)

        launch_bound = self.rebound[kernels].launch
        return Counting(counter, stream.sync, repeat, launch_bound, stream, numbers_from(), counter.sums)

    def rebound_graph_of_4(self, index):
        return self.rebound_graph(index, FEW_NODES)

    def one_by_one(self, index):
        stream = self.device.create_stream()
        counter = Counter(self, stream, NODES)

        def repeat(count, stream, one, add, total):
            for _ in range(count * NODES):
                launch(stream, one, add, total, 1, 1, 0)

        return Counting(counter, stream.sync, repeat, stream, self.one, self.add, counter.sums[0])

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


async def awaits(count, stream, launch):
    for _ in range(count):
        launch(stream)
        await stream


def request(stream, end, source, first, launches, last, target):
    """One of the worker's, to a stream or to a builder, and what ends it there."""
    first.copy_from(source, stream=stream)
    for dense in launches:
        dense(stream)
    last.copy_to(target, stream=stream)
    end()


class Counter:
    """Two numbers in the device's memory, for `Counting`, to which each of so many kernels adds one in each launch."""

    def __init__(self, backend, stream, kernels) -> None:
        self.sums = [backend._zeros(4, stream) for _ in range(2)]
        self._kernels, self._stream = kernels, stream
        self._read = [backend.pinned.allocate(4) for _ in range(2)]

    def expected(self, launches):
        return self._kernels * launches

    def read(self):
        for each, target in zip(self.sums, self._read, strict=True):
            each.copy_to(target, stream=self._stream)
        self._stream.sync()
        return sum(int(np.frombuffer(each, np.uint32)[0]) for each in self._read) % 2**32


class ReboundCounter(Counter):
    def expected(self, launches):
        return rebound_sum(self._kernels, launches)
