"""Callbacks: the finalisers of owners, which run when a buffer lets its owner go, close other objects."""

import gc
from types import SimpleNamespace

from ftcuda import Buffer
from ftcuda.testing.hazard import Hazard, unless_closed


class Owner:
    """Holds foreign memory; closes another object when it is let go."""

    def __init__(self, memory, other, gone):
        self.memory, self.other, self.gone = memory, other, gone

    def __del__(self):
        self.gone.append(True)
        self.other.close()
        self.memory.close()


class OwnersThatClose(Hazard):
    """A callback may close anything, also what other threads use at the moment: no lock of ours is held around it."""

    oracle = "the owner is let go of once, and what its finaliser closes is closed"

    def round(self, seed, random):
        device = self.env.device
        stream, event = device.create_stream(), device.create_event()
        memory = device.allocate(64, stream=self.env.stream)
        gone, other = [], stream if seed % 2 else event
        buffer = Buffer.from_handle(memory.handle, 64, owner=Owner(memory, other, gone))
        return SimpleNamespace(stream=stream, event=event, holders=[buffer], memory=memory, other=other, gone=gone)

    def act(self, state, index, random):
        if index == 0:
            state.holders.pop().close()  # the buffer, and with it the last reference to the owner
            return 1
        for _ in range(5):
            unless_closed(lambda: state.stream.record(state.event))
            unless_closed(lambda: self.env.other_stream.wait(state.event))
            unless_closed(state.stream.sync)
        return 15

    def check(self, state):
        gc.collect()  # the owner is this thread's: its last reference may wait for it
        self.env.device.sync()
        if state.gone != [True] or not state.other.is_closed or not state.memory.is_closed:
            raise AssertionError(
                f"the owner was let go of {len(state.gone)} times; "
                f"closed: {state.other.is_closed}, {state.memory.is_closed}"
            )
        state.stream.close()
        state.event.close()
