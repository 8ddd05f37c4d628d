"""One cache of device memory, and one of pinned memory, from which all threads allocate while some of them trim."""

from types import SimpleNamespace

import numpy as np

from ftcuda import CachingMemoryResource
from ftcuda.testing.hazard import Hazard

SIZES = (64, 512, 700, 4096, 5000)


class SharedCache(Hazard):
    """What is written to a buffer arrives, though its memory is freed and given out again while the copy waits."""

    oracle = "what is read back from each buffer; the figures of the caches when all was freed"

    def round(self, seed, random):
        stream = self.env.device.create_stream()
        return SimpleNamespace(
            stream=stream,
            device=CachingMemoryResource(self.env.plain if seed % 2 else None, max_cached_size=16384),
            pinned=CachingMemoryResource(self.env.pinned, max_cached_size=16384),
        )

    def act(self, state, index, random):
        writer, reader = self.env.device.create_stream(), self.env.device.create_stream()
        copies = []
        for turn in range(8):
            stream = state.stream if random.integers(3) == 0 else writer
            size, value = int(random.choice(SIZES)), int(random.integers(256))
            buffer = state.device.allocate(size, stream=stream)
            host = state.pinned.allocate(size)
            with stream.exclusive():
                buffer.fill(value, stream=stream)
                reader.wait(stream)
            buffer.copy_to(host, stream=reader)
            buffer.close()
            state.pinned.allocate(size, stream=reader).close()
            copies.append((host, value))
            if random.integers(8) == 0:
                (state.device, state.pinned)[turn % 2].trim()
        reader.sync()
        for host, value in copies:
            seen = set(np.frombuffer(host, np.uint8).tolist())
            if seen != {value}:
                raise AssertionError(f"read {seen} instead of {value}")
            host.close()
        for stream in (writer, reader):
            stream.close()
        return 48

    def check(self, state):
        for cache in (state.device, state.pinned):
            statistics = cache.statistics
            if statistics.in_use_count or statistics.in_use_bytes:
                raise AssertionError(f"all was freed, and {statistics}")
            cache.close()
        state.stream.close()
