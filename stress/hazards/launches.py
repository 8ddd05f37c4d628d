"""Launches of one kernel on one stream from all threads, with one shared configuration."""

from types import SimpleNamespace

from ftcuda import launch
from ftcuda.testing.hazard import Hazard


class CountedLaunches(Hazard):
    """No launch is lost or done twice, and each sees its own arguments: `triple` counts those whose three agree."""

    oracle = "how many launches were counted, each with arguments that agree"

    def round(self, seed, random):
        stream = self.env.device.create_stream()
        counter = self.env.device.allocate(4, stream=stream)
        counter.fill(0, stream=stream)
        return SimpleNamespace(stream=stream, counter=counter, done=[])

    def act(self, state, index, random):
        for turn in range(25):
            launch(state.stream, self.env.one, self.env.increment, state.counter)
            number = 1000 * index + turn
            launch(state.stream, self.env.one, self.env.triple, state.counter, number, number, float(number))
        state.done.append(50)
        return 50

    def check(self, state):
        counted = self.env.read_int(state.counter, state.stream)
        if counted != sum(state.done):
            raise AssertionError(f"{sum(state.done)} launches, {counted} counted")
        state.counter.close()
        state.stream.close()
