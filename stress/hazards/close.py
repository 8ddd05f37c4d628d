"""A stream, an event and a buffer in use while others close them."""

from types import SimpleNamespace

from ftcuda import launch
from ftcuda.testing.hazard import Hazard, unless_closed


class CloseAgainstEverything(Hazard):
    """Threads use a stream, an event and a buffer in random ways, together, while others close them."""

    oracle = "each launch that was not refused counted once, and no other; what is closed in the end says so"

    def round(self, seed, random):
        device = self.env.device
        stream, other = device.create_stream(), device.create_stream()
        buffer = device.allocate(64, stream=stream)
        buffer.fill(0, stream=stream)
        other.wait(stream)
        counts = self.env.plain.allocate(4)
        counts.fill(0, stream=self.env.stream)
        self.env.stream.sync()
        return SimpleNamespace(
            stream=stream, other=other, buffer=buffer, event=device.create_event(), counts=counts, launched=[]
        )

    def act(self, state, index, random):
        def exclusive():
            with state.stream.exclusive():
                state.stream.record()

        def answer(done):
            if done not in (True, False):
                raise AssertionError(f"{done} is no answer to whether work is done")

        def count_in(stream):
            launch(stream, self.env.one, self.env.tally, state.counts, state.buffer, 0)
            state.launched.append(1)

        calls = [
            lambda: count_in(state.stream),
            lambda: count_in(state.other),
            lambda: state.buffer.fill(0, stream=state.other),
            lambda: state.stream.record(state.event),
            lambda: state.other.wait(state.event),
            lambda: state.other.wait(state.stream),
            lambda: answer(state.stream.is_done),
            lambda: answer(state.event.is_done),
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
            if not thing.is_closed:
                raise AssertionError(f"{thing} was closed and is open")
        self.env.device.sync()  # what was submitted to a stream is done after its close too
        counted = self.env.read_int(state.counts, self.env.stream)
        if counted != len(state.launched):
            raise AssertionError(f"{len(state.launched)} launches, {counted} counted")
        state.counts.close()
