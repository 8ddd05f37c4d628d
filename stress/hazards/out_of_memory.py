"""Allocation from all threads with too little memory for all of them."""

from types import SimpleNamespace

import numpy as np

from ftcuda import Buffer, OutOfMemoryError
from ftcuda.testing.hazard import Hazard

MEBI = 1 << 20


class OutOfMemoryUnderLoad(Hazard):
    """Who gets no memory is told so; everybody else goes on, and in the end nothing is missing."""

    oracle = (
        "what each buffer holds that somebody got; live memory, and that all of it may be had again, when all was freed"
    )
    simulated_only = "limits the device's memory"

    def round(self, seed, random):
        from ftcuda.testing import simulation

        before = self.live("device_allocation")
        simulation.limit_memory(24 * MEBI)
        return SimpleNamespace(before=before, stream=self.env.device.create_stream(), copies=[])

    def act(self, state, index, random):
        for _ in range(6):
            try:
                source = (self.env.plain, self.env.resource)[random.integers(2)]
                buffer = source.allocate(int(random.integers(1, 8)) * MEBI, stream=state.stream)
            except OutOfMemoryError:
                continue
            part, host = Buffer.from_handle(buffer.handle, 64, owner=buffer), self.env.pinned.allocate(64)
            with state.stream.exclusive():
                buffer.fill(index & 255, stream=state.stream)
                part.copy_to(host, stream=state.stream)
            state.copies.append((host, index & 255))
            part.close()
            buffer.close()
        return 18

    def check(self, state):
        from ftcuda.testing import simulation

        state.stream.sync()
        state.stream.close()
        try:
            self.env.plain.allocate(20 * MEBI).close()
        finally:
            simulation.limit_memory(0)
        for host, value in state.copies:
            seen = set(np.frombuffer(host, np.uint8).tolist())
            if seen != {value}:
                raise AssertionError(f"read {seen} instead of {value}")
        left = self.live("device_allocation")
        if left != state.before:
            raise AssertionError(f"after all was freed the driver has {left}, and before had {state.before}")
