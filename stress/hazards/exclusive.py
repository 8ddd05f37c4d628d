"""Exclusive sections of one stream."""

from types import SimpleNamespace

import numpy as np

from ftcuda import launch
from ftcuda.testing.hazard import Hazard


class ExclusiveSections(Hazard):
    """Each thread stores three numbers in a row; nobody's may come in between, not even without a section."""

    oracle = "the order in which the numbers arrived, and how many"
    STEPS = 3

    def round(self, seed, random):
        stream = self.env.device.create_stream()
        log = self.env.device.allocate(4 * 1024, stream=stream)
        log.fill(0, stream=stream)
        return SimpleNamespace(stream=stream, log=log, written=[])

    def act(self, state, index, random):
        append = self.env.append
        if index % 4 == 3:  # one that has no section comes between sections only
            launch(state.stream, self.env.one, append, state.log, 1_000_000)
            state.written.append(1)
            return 1
        for turn in range(4):
            with state.stream.exclusive():
                for step in range(self.STEPS):
                    launch(state.stream, self.env.one, append, state.log, 1000 * index + self.STEPS * turn + step)
            state.written.append(self.STEPS)
        return 4 * self.STEPS

    def check(self, state):
        host = self.env.pinned.allocate(state.log.size)
        state.log.copy_to(host, stream=state.stream)
        state.stream.sync()
        seen = np.frombuffer(host, np.int32)
        if seen[0] != sum(state.written):
            raise AssertionError(f"{sum(state.written)} launches, {seen[0]} done")
        places = [int(value) for value in seen[1 : seen[0] + 1] if value != 1_000_000]
        whole = [int(value) for value in seen[1 : seen[0] + 1]]
        for begin in range(0, len(places), self.STEPS):
            expected = [places[begin] + step for step in range(self.STEPS)]
            at = whole.index(places[begin])
            if whole[at : at + self.STEPS] != expected:
                raise AssertionError(f"a section was interrupted: {whole[at : at + self.STEPS]} instead of {expected}")
        state.log.close()
        state.stream.close()
