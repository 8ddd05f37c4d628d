"""Objects in reference cycles, collected by whichever thread happens to, with or without a context."""

import gc
import threading
from types import SimpleNamespace

from ftcuda.testing.hazard import Hazard


class Collection(Hazard):
    """A collection destroys streams, events and buffers on threads that never used CUDA."""

    oracle = "what the allocator still counts as in use; live streams and memory, on the simulated driver"
    KINDS = ("stream", "device_allocation")
    unscheduled = "it starts threads of its own"

    def round(self, seed, random):
        before = self.live(*self.KINDS)
        used = self.env.resource.statistics.in_use_count
        return SimpleNamespace(before=before, used=used, stream=self.env.device.create_stream())

    def act(self, state, index, random):
        device = self.env.device
        stream = state.stream
        cycle = [device.allocate(1000, stream=stream), device.create_event(), stream.record(), device.create_stream()]
        cycle.append(cycle)
        del cycle
        if random.random() < 0.2:
            collector = threading.Thread(target=gc.collect)
            collector.start()
            collector.join()
        return 4

    def check(self, state):
        gc.collect()
        state.stream.sync()
        state.stream.close()
        if (used := self.env.resource.statistics.in_use_count) != state.used:
            raise AssertionError(f"{used} allocations are in use after all were collected, {state.used} before")
        left = self.live(*self.KINDS)
        if left != state.before:
            raise AssertionError(f"after all were collected the driver has {left}, and before had {state.before}")
