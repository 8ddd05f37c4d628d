"""Waits with a timeout, beside others without, in all threads."""

from types import SimpleNamespace

import numpy as np

from ftcuda import launch
from ftcuda.testing.hazard import Hazard


class LimitedWaits(Hazard):
    """A wait that came back has waited: what its thread submitted before is done. One that gave up ended nothing."""

    oracle = "after a wait that came back the counter shows all launches before it; at the end it shows all of them"
    unscheduled = "how long a wait takes depends on time"
    TURNS = 20

    def round(self, seed, random):
        return SimpleNamespace(shared=self.env.device.create_stream(), gave_up=[], waited=[])

    def act(self, state, index, random):
        stream = state.shared if index % 2 else self.env.device.create_stream()
        counter = self.env.pinned.allocate(4)
        value = np.frombuffer(counter, np.int32)
        value[:] = 0
        for turn in range(1, self.TURNS + 1):
            launch(stream, self.env.one, self.env.increment, counter)
            event = stream.record(options={"blocking_sync": turn % 2})
            waiter = (stream, event, self.env.device)[int(random.integers(3))]
            timeout = (None, 0, 0.0001, 60)[int(random.integers(4))]
            try:
                waiter.sync(timeout)
            except TimeoutError:
                if timeout in (None, 60):
                    raise
                state.gave_up.append(1)
                continue
            state.waited.append(1)
            if value[0] != turn:
                raise AssertionError(f"after a wait of {waiter} for {timeout} s {value[0]} of {turn} launches are done")
        stream.sync()
        if value[0] != self.TURNS:
            raise AssertionError(f"{value[0]} of {self.TURNS} launches are done at the end")
        if stream is not state.shared:
            stream.close()
        return self.TURNS

    def check(self, state):
        state.shared.close()
