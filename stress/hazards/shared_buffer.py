"""The first uses of one buffer in many streams, and its close."""

import weakref
from types import SimpleNamespace

import numpy as np

from ftcuda import Buffer
from ftcuda.testing.hazard import Hazard, unless_closed


class Owner:
    """Of memory, which is somebody else's once this is gone."""


class SharedBuffer(Hazard):
    """Every stream that used the buffer is waited for when it is freed, and let go afterwards."""

    oracle = "what the memory of others holds when its owner is let go; live streams, on the simulated driver"

    def round(self, seed, random):
        before = self.live("stream")
        device = self.env.device
        streams = [device.create_stream() for _ in range(6)]
        memory, found = None, []
        if seed % 2:  # the owner is kept until the work is done
            memory = self.env.pinned.allocate(64)
            owner = Owner()
            weakref.finalize(owner, lambda: found.append(set(np.frombuffer(memory, np.uint8).tolist())))
            buffer = Buffer.from_handle(memory.handle, 64, owner=owner)
            del owner
        else:
            buffer = device.allocate(64, stream=streams[0])
        for stream in streams[1:]:
            stream.wait(streams[0])
        last = int(random.integers(6))
        return SimpleNamespace(
            before=before, streams=streams, buffer=buffer, memory=memory, found=found, last=last, filled=[]
        )

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
        if state.memory is not None:
            self.env.let_go(lambda: state.found)  # by the close, or a moment later by whoever looks
            (seen,) = state.found
            if state.filled and seen != {1}:
                raise AssertionError(
                    f"{len(state.filled)} fills were submitted, and its owner ended when {seen} was there"
                )
        for stream in state.streams:
            stream.close()
        left = self.live("stream")
        if left != state.before:
            raise AssertionError(f"the buffer keeps streams: {left} live, {state.before} before")
