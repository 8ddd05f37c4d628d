"""Captures that others begin in streams in which ftcuda frees, asks and waits of its own accord."""

import ctypes
from types import SimpleNamespace

import numpy as np

import ftcuda
from ftcuda import (
    Buffer,
    CachingMemoryResource,
    LegacyPinnedMemoryResource,
    StatisticsMemoryResource,
    SynchronousMemoryResource,
    launch,
)
from ftcuda.testing.hazard import Hazard
from ftcuda.testing.schedule import Lock

RELAXED = 2  # CUstreamCaptureMode
STREAMS = 3
TURNS = 12
LAUNCHES = 3  # in a capture


class CapturedStreams(Hazard):
    """A capture is whole, and has what its thread launched and nothing else, whatever is closed meanwhile that was used
    in its stream before; all of that goes, though nobody waits for the device.
    """

    oracle = (
        "how the driver answers the end of each capture, how many nodes its graph has and how often these count in a "
        "launch; what each fill before wrote; accounts of memory, of which none is left"
    )
    threads = 2
    simulated_only = "a GPU's driver crashes where a record or a free meets the capture of that stream (decision 39)"

    def __init__(self, env):
        super().__init__(env)
        self._driver = ctypes.CDLL(ftcuda.driver_info().path)
        self._is_able = tuple(map(int, ftcuda.driver_info().version.split("."))) >= (11, 4)

    def call(self, name, *arguments):
        answer = getattr(self._driver, name)(*arguments)
        assert answer == 0, f"{name} answered {answer}: somebody ended the capture"

    def round(self, seed, random):
        pinned = StatisticsMemoryResource(LegacyPinnedMemoryResource())
        device = self.env.device
        places = [SimpleNamespace(stream=device.create_stream(), lock=Lock()) for _ in range(STREAMS)]
        plain = LegacyPinnedMemoryResource(), SynchronousMemoryResource(device)
        caches = [CachingMemoryResource(upstream) for upstream in plain]
        upstream = StatisticsMemoryResource(device.memory_resource)
        return SimpleNamespace(pinned=pinned, caches=caches, places=places, upstream=upstream)

    def act(self, state, index, random):
        count, counter = 0, self.counter()
        for _ in range(TURNS):
            place = state.places[int(random.integers(STREAMS))]
            if self._is_able and random.integers(3) == 0:
                count += self.capture(place, counter, count)
            else:
                other = state.places[int(random.integers(STREAMS))]
                self.use(state, place, other, random)()
        return TURNS

    def counter(self):
        buffer = self.env.pinned.allocate(4)
        array = np.frombuffer(buffer, np.int32)
        array[:] = 0
        return SimpleNamespace(buffer=buffer, array=array)

    def capture(self, place, counter, before):
        """Captures launches, and launches them. How often they counted."""
        graph, executable, nodes = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        with place.lock:
            handle = ctypes.c_void_p(place.stream.handle)  # at first nobody else's
            self.call("cuStreamBeginCapture_v2", handle, RELAXED)
            try:
                for _ in range(LAUNCHES):
                    launch(place.stream, self.env.one, self.env.increment, counter.buffer)
            finally:  # else nobody could wait for the device any more
                ended = self._driver.cuStreamEndCapture(handle, ctypes.byref(graph))
            assert ended == 0, f"cuStreamEndCapture answered {ended}: somebody ended the capture"
            self.call("cuGraphGetNodes", graph, None, ctypes.byref(nodes))
            self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
            self.call("cuGraphLaunch", executable, handle)
            place.stream.sync()
        seen = int(counter.array[0]) - before
        if (nodes.value, seen) != (LAUNCHES, LAUNCHES):
            raise AssertionError(f"{LAUNCHES} captured launches made {nodes.value} nodes, which counted {seen} times")
        self.call("cuGraphExecDestroy", executable)
        self.call("cuGraphDestroy", graph)
        return LAUNCHES

    def use(self, state, place, other, random):
        """Uses something in one stream or in two, while nobody captures them. How to close it."""
        way = int(random.integers(5))
        with place.lock:
            if way == 0:
                thing = state.upstream.allocate(64, stream=place.stream)
            elif way == 1:
                thing = state.caches[int(random.integers(len(state.caches)))].allocate(64, stream=place.stream)
            elif way == 2:
                memory = state.pinned.allocate(64)
                thing = Buffer.from_handle(memory.handle, 64, owner=memory)
            elif way == 3 and self._is_able:
                return self.use_graph(state, place)
            else:
                thing = state.pinned.allocate(64)
            thing.fill(1, stream=place.stream)
            event = place.stream.record()
        if other is not place:
            with other.lock:
                other.stream.wait(event)
                thing.fill(2, stream=other.stream)
        return thing.close

    def use_graph(self, state, place):
        builder = self.env.device.create_graph_builder().begin_building()
        launch(builder, self.env.one, self.env.increment, state.pinned.allocate(4))
        graph = builder.end_building().complete()
        builder.close()
        graph.launch(place.stream)
        return graph.close

    def check(self, state):
        for cache in state.caches:
            cache.close()
        left = [state.pinned, state.upstream]
        if not self.env.let_go(lambda: not any(each.statistics.current_count for each in left)):
            found = [each.statistics.current_count for each in left]
            raise AssertionError(f"{found} buffers are left that were closed beside captures")
        for place in state.places:
            place.stream.sync()
            place.stream.close()
