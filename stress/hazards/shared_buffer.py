"""The first uses of one buffer in many streams, and its close."""

from types import SimpleNamespace

import numpy as np

from ftcuda import Buffer
from ftcuda.testing.hazard import Hazard, unless_closed


class SharedBuffer(Hazard):
    """Every stream that used the buffer is waited for when it is freed, and let go afterwards."""

    oracle = "what the memory of others holds when its buffer was closed; live streams, on the simulated driver"

    def round(self, seed, random):
        before = self.live("stream")
        device = self.env.device
        streams = [device.create_stream() for _ in range(6)]
        memory = None
        if seed % 2:  # the memory of others stays when the buffer is closed, and the close waits for the work
            memory = self.env.pinned.allocate(64)
            buffer = Buffer.from_handle(memory.handle, 64, owner=memory)
        else:
            buffer = device.allocate(64, stream=streams[0])
        for stream in streams[1:]:
            stream.wait(streams[0])
        last = int(random.integers(6))
        return SimpleNamespace(before=before, streams=streams, buffer=buffer, memory=memory, last=last, filled=[])

    def act(self, state, index, random):
        stream = state.streams[index % 6]
        for _ in range(3):
            if unless_closed(lambda: state.buffer.fill(1, stream=stream)):
                state.filled.append(index)
        if index == state.last:
            state.buffer.close()
        else:
            stream.close()
        return 4

    def check(self, state):
        state.buffer.close()
        if state.memory is not None and state.filled:
            seen = set(np.frombuffer(state.memory, np.uint8).tolist())
            if seen != {1}:
                raise AssertionError(
                    f"{len(state.filled)} fills were submitted before the close, and after it {seen} is there"
                )
        for stream in state.streams:
            stream.close()
        left = self.live("stream")
        if left != state.before:
            raise AssertionError(f"the buffer keeps streams: {left} live, {state.before} before")
