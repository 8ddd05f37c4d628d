"""The hazards.

Each is a class, made once for a run: `round(random)` makes one round's state, `act(state, index, random)` is what
thread `index` does to it, and `check(state)` raises if the round went wrong.
"""

import gc
from types import SimpleNamespace

import numpy as np

from ftcuda import (
    ClosedError,
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    SynchronousMemoryResource,
    driver_info,
    launch,
)

SOURCE = r"""
extern "C" __global__ void increment(int* counter) { atomicAdd(counter, 1); }
extern "C" __global__ void store(int* place, int value) { *place = value; }
"""
ONE = LaunchConfig(grid=1, block=1)


class Hazard:
    """What all hazards share: a device and two kernels."""

    def __init__(self) -> None:
        self.device = Device(0)
        target = "ptx" if driver_info().simulated else "cubin"
        code = Program(SOURCE, "c++").compile(target)
        self.increment = code.get_kernel("increment")
        self.store = code.get_kernel("store")
        self.pinned = LegacyPinnedMemoryResource()

    def check(self, state) -> None:
        """Nothing beyond what `act` itself would have raised."""


def unless_closed(call) -> bool:
    """Runs `call`; False if it found its object closed."""
    try:
        call()
    except ClosedError:
        return False
    return True


class CloseAgainstEverything(Hazard):
    """Threads use a stream, an event and a buffer in random ways while others close them."""

    def round(self, random):
        stream, other = self.device.create_stream(), self.device.create_stream()
        buffer = self.device.allocate(64, stream=stream)
        other.wait(stream)
        return SimpleNamespace(stream=stream, other=other, buffer=buffer, event=self.device.create_event())

    def act(self, state, index, random):
        def exclusive():
            with state.stream.exclusive():
                state.stream.record()

        calls = [
            lambda: launch(state.stream, ONE, self.increment, state.buffer),
            lambda: launch(state.other, ONE, self.increment, state.buffer),
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

    def check(self, state):
        for thing in (state.buffer, state.event, state.stream, state.other):
            thing.close()


class CountedLaunches(Hazard):
    """All threads launch on one stream; no launch may be lost or done twice."""

    def round(self, random):
        stream = self.device.create_stream()
        counter = self.device.allocate(4, stream=stream)
        counter.fill(0, stream=stream)
        return SimpleNamespace(stream=stream, counter=counter, threads=set())

    def act(self, state, index, random):
        for _ in range(50):
            launch(state.stream, ONE, self.increment, state.counter)
        state.threads.add(index)

    def check(self, state):
        host = self.pinned.allocate(4)
        state.counter.copy_to(host, stream=state.stream)
        state.stream.sync()
        counted = int(np.frombuffer(host, np.int32)[0])
        if counted != 50 * len(state.threads):
            raise AssertionError(f"{50 * len(state.threads)} launches, {counted} counted")


class ExclusiveSections(Hazard):
    """Each thread stores three numbers in a row; nobody's may come in between."""

    STEPS = 3

    def round(self, random):
        log = self.pinned.allocate(4 * 4096)
        seen = np.frombuffer(log, np.int32)
        seen[:] = -1
        return SimpleNamespace(stream=self.device.create_stream(), log=log, seen=seen, next=0)

    def act(self, state, index, random):
        for turn in range(5):
            with state.stream.exclusive():
                for step in range(self.STEPS):
                    place, state.next = state.next, state.next + 1  # the section is the only lock there is
                    launch(
                        state.stream,
                        ONE,
                        self.store,
                        state.log.handle + 4 * place,
                        1000 * index + self.STEPS * turn + step,
                    )

    def check(self, state):
        state.stream.sync()
        for begin in range(0, state.next, self.STEPS):
            first = state.seen[begin]
            if list(state.seen[begin : begin + self.STEPS]) != [first + step for step in range(self.STEPS)]:
                raise AssertionError(f"a section was interrupted: {state.seen[begin : begin + self.STEPS]}")


class Allocation(Hazard):
    """Threads allocate, use and free in streams of their own and in each other's, from pools and without."""

    def round(self, random):
        return SimpleNamespace(
            streams=[self.device.create_stream() for _ in range(4)], plain=SynchronousMemoryResource(self.device)
        )

    def act(self, state, index, random):
        home, other = state.streams[index % 4], state.streams[(index + 1) % 4]
        for _ in range(8):
            source = state.plain if random.random() < 0.2 else self.device.memory_resource
            buffer = source.allocate(int(random.integers(1, 1 << 16)), stream=home)
            other.wait(home)
            buffer.fill(index & 255, stream=other)
            buffer.close(other if random.random() < 0.5 else None)

    def check(self, state):
        for stream in state.streams:
            stream.sync()


class Collection(Hazard):
    """Objects in reference cycles are collected by whichever thread happens to."""

    def round(self, random):
        return self.device.create_stream()

    def act(self, state, index, random):
        cycle = [self.device.allocate(1000, stream=state), self.device.create_event(), state.record()]
        cycle.append(cycle)
        del cycle
        if random.random() < 0.2:
            gc.collect()

    def check(self, state):
        gc.collect()
        state.sync()


class Views(Hazard):
    """Readers take views of pinned memory that another thread tries to close."""

    def round(self, random):
        return self.pinned.allocate(4096)

    def act(self, state, index, random):
        for _ in range(10):
            try:
                if index == 0:
                    state.close()
                else:
                    memoryview(state)[int(random.integers(4096))] = index & 255
            except (BufferError, ClosedError):
                continue


HAZARDS = {
    "close": CloseAgainstEverything,
    "launches": CountedLaunches,
    "exclusive": ExclusiveSections,
    "allocation": Allocation,
    "collection": Collection,
    "views": Views,
}
