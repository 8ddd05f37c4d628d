"""One bound graph for all threads, each of which launches it with arguments of its own."""

from types import SimpleNamespace

import numpy as np

from ftcuda import launch
from ftcuda.graph import GraphCompleteOptions, Parameter
from ftcuda.testing.hazard import Hazard, unless_closed

KERNELS = 3  # in the graph
VALUES = 8


class GraphArguments(Hazard):
    """Each launch has all of its own arguments, whatever others launch, trim, bind or close."""

    oracle = "counters of each thread, one for each value: each launch that returned counted once in each kernel"
    threads = 2

    def round(self, seed, random):
        example, zero = self.counters(), self.counters()
        builder = self.env.device.create_graph_builder().begin_building()
        for _ in range(KERNELS):
            counts, value = Parameter("counts", example.buffer), Parameter("value", 0)
            launch(builder, self.env.one, self.env.tally, counts, zero.buffer, value)
        most = int(random.integers(1, 4))
        graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=most))
        builder.close()
        streams = [self.env.device.create_stream() for _ in range(3)]
        return SimpleNamespace(graph=graph, bound=graph.bind(), streams=streams, example=example, found=[], plain=[])

    def counters(self):
        buffer = self.env.pinned.allocate(4 * VALUES)
        array = np.frombuffer(buffer, np.int32)
        array[:] = 0
        return SimpleNamespace(buffer=buffer, array=array)

    def act(self, state, index, random):
        mine, wanted, plain = self.counters(), [0] * VALUES, 0
        stream = state.streams[index % len(state.streams)]
        closes = index == 0 and random.integers(3) == 0
        for turn in range(12):
            way = int(random.integers(8))
            if way == 0:
                plain += unless_closed(lambda: state.graph.launch(stream))
                continue
            if way == 1:
                unless_closed(state.graph.trim)
            value = int(random.integers(VALUES))
            bound = state.graph.bind if way == 2 else lambda: state.bound
            wanted[value] += unless_closed(
                lambda bound=bound, value=value: bound().launch(stream, counts=mine.buffer, value=value)
            )
            if closes and turn == 6:
                state.graph.close()
        state.found.append((mine, wanted))
        state.plain.append(plain)
        return 12

    def check(self, state):
        for stream in state.streams:
            stream.sync()
        for mine, wanted in state.found:
            if mine.array.tolist() != [KERNELS * each for each in wanted]:
                raise AssertionError(f"launches with values {wanted} times counted {mine.array.tolist()}")
        if state.example.array.tolist() != [KERNELS * sum(state.plain)] + [0] * (VALUES - 1):
            raise AssertionError(f"{sum(state.plain)} launches as captured counted {state.example.array.tolist()}")
        state.graph.close()
        for stream in state.streams:
            stream.close()
