"""One graph for all threads, which launch it, update it, trim it and close it, and the buffers that it uses."""

from types import SimpleNamespace

import numpy as np

from ftcuda import LegacyPinnedMemoryResource, StatisticsMemoryResource, launch
from ftcuda.graph import GraphCompleteOptions
from ftcuda.testing.hazard import Hazard, unless_closed

KERNELS = 3  # in the graph


class SharedGraph(Hazard):
    """Each launch that returns runs once and whole, by one version of the graph, and keeps what it uses."""

    oracle = "counters: each launch that returned counted once in each kernel of one version; no buffer is left"
    threads = 2

    def round(self, seed, random):
        resource = StatisticsMemoryResource(LegacyPinnedMemoryResource())
        versions = [self.build(resource) for _ in range(2)]
        return SimpleNamespace(
            resource=resource,
            versions=versions,
            graph=versions[0].builder.complete(GraphCompleteOptions(max_concurrency=int(random.integers(1, 4)))),
            streams=[self.env.device.create_stream() for _ in range(3)],
            launched=[],
        )

    def build(self, resource):
        """A builder whose graph counts in each of its kernels, and where it counts: memory that is closed already."""
        builder = self.env.device.create_graph_builder().begin_building()
        arrays = []
        for _ in range(KERNELS):
            buffer = resource.allocate(4)
            arrays.append(np.frombuffer(buffer, np.int32))
            arrays[-1][:] = 0
            launch(builder, self.env.one, self.env.increment, buffer)
            buffer.close()
        return SimpleNamespace(builder=builder.end_building(), arrays=arrays)

    def act(self, state, index, random):
        mine, operations = 0, 0
        stream = state.streams[index % len(state.streams)]
        closes = index == 0 and random.integers(3) == 0
        for turn in range(12):
            if random.integers(4) == 0:
                version = state.versions[int(random.integers(2))]
                unless_closed(lambda version=version: state.graph.update(version.builder))
            if random.integers(6) == 0:
                unless_closed(state.graph.trim)
            mine += unless_closed(lambda: state.graph.launch(stream))
            operations += 1
            if closes and turn == 6:
                state.graph.close()
        state.launched.append(mine)
        return operations

    def check(self, state):
        for stream in state.streams:
            stream.sync()
        counts = [[int(array[0]) for array in version.arrays] for version in state.versions]
        if any(len(set(each)) != 1 for each in counts):
            raise AssertionError(f"launches of parts of a graph: its kernels counted {counts}")
        if sum(each[0] for each in counts) != sum(state.launched):
            raise AssertionError(f"{sum(state.launched)} launches returned, and the kernels counted {counts}")
        self.check_versions(state)
        state.graph.close()
        for version in state.versions:
            version.arrays.clear()
            version.builder.close()
        for stream in state.streams:
            stream.close()
        if not self.env.let_go(lambda: state.resource.statistics.current_count == 0):
            raise AssertionError(f"{state.resource.statistics.current_count} buffers are left of a graph that is gone")

    def check_versions(self, state):
        """Nobody updates any more: all streams launch the same version."""
        before = [int(version.arrays[0][0]) for version in state.versions]
        launched = 0
        for stream in state.streams:
            launched += unless_closed(lambda stream=stream: state.graph.launch(stream))
            stream.sync()
        found = [int(version.arrays[0][0]) - one for version, one in zip(state.versions, before, strict=True)]
        if sorted(found) != [0, launched]:
            raise AssertionError(f"{launched} launches after the last update ran {found} of the two versions")
