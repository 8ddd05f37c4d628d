"""Recording an event against destroying it, asking about it and waiting for it while others record it again."""

from types import SimpleNamespace

import numpy as np

from ftcuda.testing.hazard import Hazard, unless_closed


class RecordsAgainstDestruction(Hazard):
    """An event that is done, or waited for, has what was submitted before its record; or it says that it is closed."""

    oracle = (
        "the word that a thread has written before its record is there when the event says that it is done, when it "
        "was waited for by the host, and, read by another stream, when that waited for it; times are not negative"
    )

    def round(self, seed, random):
        device = self.env.device
        # All record in one stream, so that whatever record is the latest comes after each thread's own work.
        return SimpleNamespace(
            stream=device.create_stream(),
            others=[device.create_stream() for _ in range(2)],
            event=device.create_event({"timing_enabled": True}),
            destroy=random.random() < 0.5,
        )

    def act(self, state, index, random):
        if index == 0 and state.destroy:
            state.event.close()
            return 1
        word, copy = (self.env.pinned.allocate(4) for _ in range(2))
        for array in (word, copy):
            np.frombuffer(array, np.int32)[:] = 0
        turns = 4
        for turn in range(1, turns + 1):
            word.fill(turn.to_bytes(4, "little"), stream=state.stream)
            if unless_closed(lambda: state.stream.record(state.event)):
                asks = (self.ask, self.sync, self.wait, self.time)
                for number in random.integers(len(asks), size=2):
                    unless_closed(lambda ask=asks[number], turn=turn: ask(state, word, copy, turn, random))
        return 3 * turns

    def ask(self, state, word, copy, turn, random):
        if state.event.is_done:
            self.expect(word, turn, "an event said that it is done")

    def sync(self, state, word, copy, turn, random):
        state.event.sync()
        self.expect(word, turn, "an event was waited for")
        if not state.stream.is_closed and state.stream.is_done:
            self.expect(word, turn, "a stream said that it is done")

    def wait(self, state, word, copy, turn, random):
        other = state.others[int(random.integers(2))]
        other.wait(state.event)
        word.copy_to(copy, stream=other)
        other.sync()
        self.expect(copy, turn, "a stream waited for an event")

    def time(self, state, word, copy, turn, random):
        elapsed = self.env.elapsed(state.event)
        if elapsed is not None and elapsed < 0.0:
            raise AssertionError(f"an event is {elapsed} ms after one that was long before")

    def expect(self, buffer, turn, what):
        seen = int(np.frombuffer(buffer, np.int32)[0])
        if seen != turn:
            raise AssertionError(f"{what}, and the word written before its record is {seen} instead of {turn}")

    def check(self, state):
        for stream in (state.stream, *state.others):
            stream.sync()
            if not stream.is_done:
                raise AssertionError("a stream that was waited for is not done")
            stream.close()
        state.event.close()
