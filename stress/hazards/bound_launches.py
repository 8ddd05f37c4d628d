"""One bound launch, launched by all threads in streams of their own while one of them sets its arguments."""

from types import SimpleNamespace

import numpy as np

from ftcuda import ClosedError
from ftcuda.testing.hazard import Hazard

VALUES = 12


class BoundLaunches(Hazard):
    """A launch after a `set` has the new value, one before it the old; none is lost, none reads what is freed."""

    oracle = "how often each value was counted, against the launches that began after it was set or ended before"
    threads = 3

    def round(self, seed, random):
        stream = self.env.device.create_stream()
        counts = self.env.device.allocate(4 * VALUES, stream=stream)
        counts.fill(0, stream=stream)
        bound = self.env.tally.bind(self.env.one, counts, self.zero(stream), 0)
        return SimpleNamespace(stream=stream, counts=counts, bound=bound, begun=0, ended=0, seen=[])

    def zero(self, stream):
        made = self.env.device.allocate(4, stream=stream)
        made.fill(0, stream=stream)
        stream.sync()
        return made

    def act(self, state, index, random):
        return self.set_all(state) if index == 0 else self.launch_all(state)

    def set_all(self, state):
        for value in range(1, VALUES):
            old, new = state.bound.arguments[1], self.zero(state.stream)
            state.bound.set(1, new)
            old.close()
            state.begun = value
            state.bound.set(2, value)
            state.ended = value
        return 2 * VALUES

    def launch_all(self, state):
        stream, launch = self.env.device.create_stream(), state.bound.launch
        for _ in range(VALUES):
            least = state.ended
            try:
                launch(stream)
            except ClosedError:  # it took the arguments before the other buffer was set
                continue
            state.seen.append((least, state.begun))
        stream.sync()
        stream.close()
        return VALUES

    def check(self, state):
        host = self.env.pinned.allocate(4 * VALUES)
        state.counts.copy_to(host, stream=state.stream)
        state.stream.sync()
        counts = np.frombuffer(host, np.int32)
        for value in range(VALUES + 1):
            above = int(counts[value:].sum())
            least = sum(1 for first, _ in state.seen if first >= value)  # began after the set had ended
            most = sum(1 for _, last in state.seen if last >= value)  # ended after the set had begun
            if not least <= above <= most:
                raise AssertionError(f"{least} to {most} launches with {value} or more, {above} counted: {counts}")
        for thing in (state.bound.arguments[1], state.counts, state.stream):
            thing.close()
