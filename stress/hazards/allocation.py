"""Allocation, use and freeing in streams of one's own and in each other's."""

from types import SimpleNamespace

from stress.hazard import Hazard


class Allocation(Hazard):
    """Memory from the cache, the pool and the driver, freed in its home stream or another, while others do the same."""

    def round(self, seed, random):
        return SimpleNamespace(streams=[self.env.device.create_stream() for _ in range(4)])

    def act(self, state, index, random):
        home, other = state.streams[index % 4], state.streams[(index + 1) % 4]
        for _ in range(8):
            source = (self.env.plain, self.env.pool, self.env.resource)[random.integers(3)]
            buffer = source.allocate(int(random.integers(1, 1 << 16)), stream=home)
            other.wait(home)
            buffer.fill(index & 255, stream=other)
            buffer.close(other if random.random() < 0.5 else None)
        return 32

    def check(self, state):
        for stream in state.streams:
            stream.sync()
            stream.close()
