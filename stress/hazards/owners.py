"""Callbacks: the finalisers of owners, which run when a buffer lets its owner go, close other objects."""

from types import SimpleNamespace

from ftcuda import Buffer
from stress.hazard import Hazard, unless_closed


class Owner:
    """Holds foreign memory; closes another object when it is let go."""

    def __init__(self, memory, other):
        self.memory, self.other = memory, other

    def __del__(self):
        self.other.close()
        self.memory.close()


class OwnersThatClose(Hazard):
    """A callback may close anything, also what other threads use at the moment: no lock of ours is held around it."""

    def round(self, seed, random):
        device = self.env.device
        stream, event = device.create_stream(), device.create_event()
        memory = device.allocate(64, stream=self.env.stream)
        buffer = Buffer.from_handle(memory.handle, 64, owner=Owner(memory, stream if seed % 2 else event))
        return SimpleNamespace(stream=stream, event=event, holders=[buffer])

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
        state.stream.close()
        state.event.close()
