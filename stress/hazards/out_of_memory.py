"""Allocation from all threads with too little memory for all of them."""

from types import SimpleNamespace

from ftcuda import OutOfMemoryError
from stress.hazard import Hazard

MEBI = 1 << 20


class OutOfMemoryUnderLoad(Hazard):
    """Who gets no memory is told so; everybody else goes on, and in the end nothing is missing."""

    simulated_only = "limits the device's memory"

    def round(self, seed, random):
        from ftcuda.testing import simulation

        simulation.limit_memory(24 * MEBI)
        return SimpleNamespace(stream=self.env.device.create_stream(), refused=0)

    def act(self, state, index, random):
        for _ in range(6):
            try:
                source = (self.env.plain, self.env.resource)[random.integers(2)]
                buffer = source.allocate(int(random.integers(1, 8)) * MEBI, stream=state.stream)
            except OutOfMemoryError:
                state.refused += 1
                continue
            buffer.fill(index & 255, stream=state.stream)
            buffer.close()
        return 12

    def check(self, state):
        from ftcuda.testing import simulation

        state.stream.sync()
        state.stream.close()
        simulation.limit_memory(0)
