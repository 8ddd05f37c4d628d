"""Streams that wait for each other, in all threads at once."""

from types import SimpleNamespace

import numpy as np

from ftcuda.testing.hazard import Hazard


class OrderedStreams(Hazard):
    """What one stream wrote before another waited for it, the other reads: each wait is for its own record."""

    oracle = "what the reading stream read"

    def round(self, seed, random):
        return SimpleNamespace(made=[])

    def act(self, state, index, random):
        device = self.env.device
        writer, reader = device.create_stream(), device.create_stream()
        buffer = device.allocate(64, stream=writer)
        host = self.env.pinned.allocate(64)
        for turn in range(4):
            value = 16 * index + turn
            buffer.fill(value, stream=writer)
            reader.wait(writer)
            buffer.copy_to(host, stream=reader)
            reader.sync()
            seen = set(np.frombuffer(host, np.uint8).tolist())
            if seen != {value & 255}:
                raise AssertionError(f"read {seen} instead of {value & 255}: the wait was for another record")
        for thing in (buffer, writer, reader):
            thing.close()
        return 16
