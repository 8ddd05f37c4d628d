"""A sequence that the device computes step by step."""

from collections import deque
from collections.abc import AsyncIterator

import numpy as np

from ftcuda import Device, LaunchConfig, Program, StagingPool, launch

AHEAD = 4  # steps that are submitted before the first of them is awaited
FACTOR, SUMMAND = 1664525, 1013904223

SOURCE = f"""
extern "C" __global__ void step(unsigned* state, unsigned* numbers, int index) {{
    *state = *state * {FACTOR}u + {SUMMAND}u;
    numbers[index] = *state;
}}
"""
ONE = LaunchConfig(grid=1, block=1)


class Generator:
    """Sequences of one device, any number at once."""

    def __init__(self, device: Device, pinned_bytes: int) -> None:
        self._device = device
        self._step = Program(SOURCE, "c++").compile("ptx").get_kernel("step")
        self.pool = StagingPool(device, pinned_bytes)

    async def numbers(self, seed: int, count: int) -> AsyncIterator[int]:
        """The `count` numbers after `seed`, each as soon as it is there."""
        lease = self.pool.lease(4 * count, timeout=0)  # a loop does not wait
        stream = self._device.create_stream()
        state = self._device.allocate(4, stream=stream)
        try:
            state.fill(np.uint32(seed), stream=stream)
            found = np.frombuffer(lease, np.uint32)
            steps = deque()
            for index in range(count + AHEAD):
                if index < count:
                    launch(stream, ONE, self._step, state, lease, index)
                    steps.append(stream.record())
                if index >= AHEAD:
                    await steps.popleft()
                    yield int(found[index - AHEAD])
        finally:  # also of a generator that is given up: what runs keeps what it uses
            lease.close()
            state.close()
            stream.close()


def expected(seed: int, count: int) -> list[int]:
    """The same on the host."""
    numbers = [seed]
    for _ in range(count):
        numbers.append((numbers[-1] * FACTOR + SUMMAND) % 2**32)
    return numbers[1:]
