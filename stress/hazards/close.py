"""A stream, an event and a buffer in use while others close them."""

from types import SimpleNamespace

from ftcuda import launch
from stress.hazard import Hazard, unless_closed


class CloseAgainstEverything(Hazard):
    """Threads use a stream, an event and a buffer in random ways, together, while others close them."""

    def round(self, seed, random):
        device = self.env.device
        stream, other = device.create_stream(), device.create_stream()
        buffer = device.allocate(64, stream=stream)
        other.wait(stream)
        return SimpleNamespace(stream=stream, other=other, buffer=buffer, event=device.create_event())

    def act(self, state, index, random):
        def exclusive():
            with state.stream.exclusive():
                state.stream.record()

        one, increment = self.env.one, self.env.increment
        calls = [
            lambda: launch(state.stream, one, increment, state.buffer),
            lambda: launch(state.other, one, increment, state.buffer),
            lambda: state.buffer.fill(1, stream=state.other),
            lambda: state.stream.record(state.event),
            lambda: state.other.wait(state.event),
            lambda: state.other.wait(state.stream),
            lambda: state.stream.is_done,
            lambda: state.event.is_done,
            state.stream.sync,
            state.event.sync,
            exclusive,
            *([state.stream.close, state.event.close, state.buffer.close] if random.random() < 0.3 else []),
        ]
        for _ in range(12):
            unless_closed(calls[random.integers(len(calls))])
        return 12

    def check(self, state):
        for thing in (state.buffer, state.event, state.stream, state.other):
            thing.close()
