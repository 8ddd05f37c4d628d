"""Allocation, use and freeing in streams of one's own and in each other's."""

from types import SimpleNamespace

import numpy as np

from ftcuda.testing.hazard import Hazard


class Allocation(Hazard):
    """Memory from the cache, the pool and the driver, freed in its home stream or another, while others do the same."""

    oracle = (
        "what each thread wrote, read back in stream order though the memory is freed and given out again meanwhile"
    )

    def round(self, seed, random):
        return SimpleNamespace(streams=[self.env.device.create_stream() for _ in range(4)], copies=[])

    def act(self, state, index, random):
        home, other = state.streams[index % 4], state.streams[(index + 1) % 4]
        for _ in range(8):
            source = (self.env.plain, self.env.pool, self.env.resource)[random.integers(3)]
            buffer = source.allocate(int(random.integers(1, 1 << 16)), stream=home)
            other.wait(home)
            value = int(random.integers(256))
            host = self.env.pinned.allocate(buffer.size)
            with other.exclusive():  # the stream is also another thread's
                buffer.fill(value, stream=other)
                buffer.copy_to(host, stream=other)
            state.copies.append((host, value))
            buffer.close(other if random.random() < 0.5 else None)
        return 40

    def check(self, state):
        for stream in state.streams:
            stream.sync()
            stream.close()
        for host, value in state.copies:
            seen = set(np.unique(np.frombuffer(host, np.uint8)).tolist())
            if seen != {value}:
                raise AssertionError(f"read {seen} instead of {value}")
