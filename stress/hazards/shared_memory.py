"""Launches of one kernel that want different amounts of dynamic shared memory."""

from types import SimpleNamespace

from ftcuda import LaunchConfig, launch
from ftcuda.testing.hazard import Hazard

KIBI = 1024


class SharedMemory(Hazard):
    """Each launch may use what it asked for, whatever the others told the driver meanwhile."""

    oracle = "how many launches were counted, none of which may be refused"

    def round(self, seed, random):
        counter = self.env.plain.allocate(4)
        counter.fill(0, stream=self.env.stream)
        return SimpleNamespace(kernel=self.env.new_code().get_kernel("increment"), counter=counter, done=[])

    def act(self, state, index, random):
        for turn in range(3):
            config = LaunchConfig(grid=1, block=1, shmem_size=(50 + (7 * index + 5 * turn) % 40) * KIBI)
            launch(self.env.stream, self.env.one, self.env.increment, state.counter)
            launch(self.env.stream, config, state.kernel, state.counter)
            state.done.append(2)
        return 6

    def check(self, state):
        counted = self.env.read_int(state.counter, self.env.stream)
        if counted != sum(state.done):
            raise AssertionError(f"{sum(state.done)} launches, {counted} counted")
        state.counter.close()
        del state.kernel
        self.env.device.sync()
