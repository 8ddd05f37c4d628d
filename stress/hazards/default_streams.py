"""The default streams: the legacy one, which all threads share, and the one that each thread has of its own."""

from types import SimpleNamespace

import numpy as np

from ftcuda import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, launch
from ftcuda.testing.hazard import Hazard, unless_closed

TURNS = 4


class DefaultStreams(Hazard):
    """They are streams as any: calls have an order, records are reached, frees wait. Nobody can close them."""

    oracle = (
        "the order of what all threads append in the legacy stream; the words that each thread wrote in its own, when "
        "their events are done and when other streams waited for them; what is read of a buffer that another one closes"
    )
    threads = 3

    def round(self, seed, random):
        device, stream = self.env.device, self.env.stream
        log = device.allocate(4 * 1024, stream=stream)
        log.fill(0, stream=stream)
        shared = device.allocate(64, stream=stream)
        shared.fill(seed & 255, stream=stream)
        device.sync()
        return SimpleNamespace(log=log, shared=shared, value=seed & 255, appended=[])

    def act(self, state, index, random):
        other = self.env.device.create_stream()
        word, copy = (self.env.pinned.allocate(4) for _ in range(2))
        for turn in range(TURNS):
            value = TURNS * index + turn + 1
            launch(LEGACY_DEFAULT_STREAM, self.env.one, self.env.append, state.log, value)
            state.appended.append(value)
            word.fill(value.to_bytes(4, "little"), stream=PER_THREAD_DEFAULT_STREAM)
            event = PER_THREAD_DEFAULT_STREAM.record()
            if event.is_done or PER_THREAD_DEFAULT_STREAM.is_done:
                self.expect(word, value, "the thread's own stream, which said that it is done")
            other.wait(event if turn % 2 else PER_THREAD_DEFAULT_STREAM)
            word.copy_to(copy, stream=other)
            other.sync()
            self.expect(copy, value, "a stream that waited for the thread's own")
        self.read_shared(state, index, random)
        for stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
            stream.close()  # without effect
            stream.sync()
        other.close()
        return 8 * TURNS + 6

    def read_shared(self, state, index, random):
        stream = (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM)[int(random.integers(2))]
        host = self.env.pinned.allocate(64)
        if index % 3 == 2:
            unless_closed(lambda: state.shared.close(stream))
            # What the freed memory may become: without the wait for the readers they would see this.
            new = self.env.device.allocate(64, stream=self.env.stream)
            new.fill(~state.value & 255, stream=self.env.stream)
            new.close()
        elif unless_closed(lambda: state.shared.copy_to(host, stream=stream)):
            stream.sync()
            seen = set(np.frombuffer(host, np.uint8).tolist())
            if seen != {state.value}:
                raise AssertionError(f"a reader in a default stream saw {seen} instead of {state.value}")

    def expect(self, buffer, value, who):
        seen = int(np.frombuffer(buffer, np.int32)[0])
        if seen != value:
            raise AssertionError(f"{who}, has {seen} instead of {value}")

    def check(self, state):
        host = self.env.pinned.allocate(state.log.size)
        state.log.copy_to(host, stream=LEGACY_DEFAULT_STREAM)
        LEGACY_DEFAULT_STREAM.sync()
        count, *seen = np.frombuffer(host, np.int32).tolist()
        seen = seen[:count]
        if sorted(seen) != sorted(state.appended):
            raise AssertionError(f"appended {sorted(state.appended)}, and {sorted(seen)} arrived")
        for value in seen:  # each thread's own are in its order
            mine = [other for other in seen if (other - 1) // TURNS == (value - 1) // TURNS]
            if mine != sorted(mine):
                raise AssertionError(f"one thread's launches came in the order {mine}")
        state.shared.close()
        state.log.close()
