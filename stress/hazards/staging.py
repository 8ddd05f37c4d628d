"""One staging pool, smaller than what all threads want, whose leases are dropped while copies still read them."""

from types import SimpleNamespace

import numpy as np

from ftcuda import StagingPool
from ftcuda.testing.hazard import Hazard

SIZES = (64, 512, 700, 4096)
SIZE = 8192


class Staging(Hazard):
    """What was written to a lease arrives, though the next one to have its memory writes there at once."""

    oracle = "what is read back from device memory; the figures of the pool when all was given back"

    def round(self, seed, random):
        return SimpleNamespace(pool=StagingPool(self.env.device, SIZE))

    def act(self, state, index, random):
        stream = self.env.device.create_stream()
        written = []
        for turn in range(8):
            size, value = int(random.choice(SIZES)), int(random.integers(256))
            buffer = self.env.resource.allocate(size, stream=stream)
            with state.pool.lease(size) as lease:
                np.frombuffer(lease, np.uint8)[:] = value
                buffer.copy_from(lease, stream=stream)
                if turn % 4 == 0:
                    lease.close()
            written.append((buffer, value))
            if random.integers(8) == 0:
                state.pool.trim()
        for buffer, value in written:
            lease = state.pool.lease(buffer.size)
            buffer.copy_to(lease, stream=stream)
            stream.sync()
            seen = set(np.frombuffer(lease, np.uint8).tolist())
            if seen != {value}:
                raise AssertionError(f"read {seen} instead of {value}")
            buffer.close()
            del lease  # forgotten
        stream.close()
        return 40

    def check(self, state):
        statistics = state.pool.statistics
        if statistics.in_use_count or statistics.in_use_bytes or statistics.waiting or statistics.idle_bytes > SIZE:
            raise AssertionError(f"all was given back, and {statistics}")
        state.pool.close()
