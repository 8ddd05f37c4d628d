"""Exclusive sections of asyncio tasks that end inside: by an exception, a cancellation, or just so."""

import asyncio
from types import SimpleNamespace

import numpy as np

from ftcuda import SectionAbandonedError, launch
from ftcuda.testing.hazard import Hazard


class Tasks(Hazard):
    """A task that ends inside gives its section up: one call is told, nobody waits for ever, rows stand together.

    The tasks and their exceptions are kept, as programs do, and with them all that could have ended the sections.
    """

    oracle = "how many calls were told of each section that was given up; the rows that the sections stored"
    unscheduled = "the loops of asyncio wait in a way that the scheduler does not know"
    TURNS = 6

    def round(self, seed, random):
        stream = self.env.device.create_stream()
        log = self.env.device.allocate(4 * 2048, stream=stream)
        log.fill(0, stream=stream)
        return SimpleNamespace(stream=stream, log=log, rows=[], told=[], lost=[], kept=[])

    def act(self, state, index, random):
        if index % 3 == 2:
            return sum(self.attempt(state, lambda: self.store(state, 1_000_000, 1)) for _ in range(self.TURNS))
        asyncio.run(self.work(state, index, random))
        return self.TURNS

    async def work(self, state, index, random):
        for turn in range(self.TURNS):
            fate = ("leave", "raise", "cancel", "end")[int(random.integers(4))]
            task = asyncio.create_task(self.enter(state, 1000 * index + 10 * turn, int(random.integers(1, 4)), fate))
            await asyncio.wait([task])
            state.kept.append(task)
            if not task.cancelled() and task.exception() is not None and not isinstance(task.exception(), KeyError):
                raise task.exception()

    async def enter(self, state, first, steps, fate):
        section = state.stream.exclusive()
        try:
            section.__enter__()
        except SectionAbandonedError:
            state.told.append(1)
            return None
        self.store(state, first, steps)
        if fate == "leave":
            section.__exit__(None, None, None)
            return None
        state.lost.append(1)
        if fate == "raise":
            raise KeyError(first)
        if fate == "cancel":
            asyncio.current_task().cancel()
            await asyncio.sleep(0)
        return section

    def store(self, state, first, steps):
        for step in range(steps):
            launch(state.stream, self.env.one, self.env.append, state.log, first + step)
        state.rows.append((first, steps))

    def attempt(self, state, call):
        """Runs `call`, and counts if it was told of somebody else's section."""
        try:
            call()
        except SectionAbandonedError:
            state.told.append(1)
        return 1

    def check(self, state):
        self.attempt(state, lambda: state.stream.record().close())  # the last one may have been lost after all else
        if len(state.told) != len(state.lost):
            raise AssertionError(f"{len(state.lost)} sections were given up, and {len(state.told)} calls were told")
        host = self.env.pinned.allocate(state.log.size)
        state.log.copy_to(host, stream=state.stream)
        state.stream.sync()
        seen = np.frombuffer(host, np.int32)
        entries = [int(value) for value in seen[1 : seen[0] + 1]]
        if len(entries) != sum(steps for _, steps in state.rows):
            raise AssertionError(f"{sum(steps for _, steps in state.rows)} launches, {len(entries)} done")
        for first, steps in state.rows:
            at = entries.index(first)
            if first != 1_000_000 and entries[at : at + steps] != list(range(first, first + steps)):
                raise AssertionError(f"a section was interrupted: {entries[at : at + steps]} after {first}")
        state.kept.clear()
        state.log.close()
        state.stream.close()
