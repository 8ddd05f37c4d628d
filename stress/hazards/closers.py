"""All threads close the same objects at once."""

from types import SimpleNamespace

from ftcuda import Buffer
from ftcuda.testing.hazard import Hazard


class ManyClosers(Hazard):
    """Each handle is destroyed, and once: the simulated driver counts a second time as a violation, a GPU may crash.

    Buffers are closed in one thread's stream or another's, each of which goes when all is closed.
    """

    oracle = "every object says that it is closed; live handles, on the simulated driver"
    KINDS = ("stream", "pool", "device_allocation")

    def round(self, seed, random):
        before = self.live(*self.KINDS)
        device = self.env.device
        stream = device.create_stream()
        things = [device.allocate(64, stream=stream), self.env.plain.allocate(64), self.env.own_pool(), stream]
        return SimpleNamespace(before=before, things=[*things, device.create_event()])

    def act(self, state, index, random):
        own = self.env.device.create_stream()
        for place in random.permutation(len(state.things)):
            thing = state.things[place]
            if isinstance(thing, Buffer) and random.integers(2):
                thing.close(own)
            else:
                thing.close()
        own.close()
        return len(state.things) + 2

    def check(self, state):
        if not all(thing.is_closed for thing in state.things):
            raise AssertionError("an object was closed by all threads and is open")
        left = self.live(*self.KINDS)
        if left != state.before:
            raise AssertionError(f"after all were closed the driver has {left}, and before had {state.before}")
