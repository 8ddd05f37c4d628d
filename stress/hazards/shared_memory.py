"""Launches of one kernel that want different amounts of dynamic shared memory."""

from types import SimpleNamespace

from ftcuda import LaunchConfig, launch
from stress.hazard import Hazard

KIBI = 1024


class SharedMemory(Hazard):
    """Each launch may use what it asked for, whatever the others told the driver meanwhile."""

    def round(self, seed, random):
        return SimpleNamespace(kernel=self.env.new_code().get_kernel("increment"))

    def act(self, state, index, random):
        for turn in range(3):
            config = LaunchConfig(grid=1, block=1, shmem_size=(50 + (7 * index + 5 * turn) % 40) * KIBI)
            launch(self.env.stream, self.env.one, self.env.increment, self.env.counter)
            launch(self.env.stream, config, state.kernel, self.env.counter)
        return 6

    def check(self, state):
        del state.kernel
        self.env.device.sync()
