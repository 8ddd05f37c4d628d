"""Exclusive sections that are lost, that die with their thread, or that another thread ends."""

import threading
from types import SimpleNamespace

import numpy as np

from ftcuda import SectionAbandonedError, launch
from ftcuda.testing import simulation
from ftcuda.testing.hazard import Hazard
from ftcuda.testing.schedule import Event, Queue


class DeadOwners(Hazard):
    """For each section that is given up one thread is told, once, and what it wanted is not submitted; nobody waits for
    ever; what was stored in one section stands in a row.

    Thread 0 ends the sections that threads 1 to 3 hand over; the others have no section.
    """

    oracle = "how many threads were told of each section that was given up; the rows that the sections stored"
    threads = 4
    GIVERS = (1, 2, 3)
    TURNS = 6

    def round(self, seed, random):
        stream = self.env.device.create_stream()
        log = self.env.device.allocate(4 * 1024, stream=stream)
        log.fill(0, stream=stream)
        return SimpleNamespace(stream=stream, log=log, given=Queue(), rows=[], told=[], lost=[], dead=[])

    def act(self, state, index, random):
        if index == 0:
            return self.end_those_given(state)
        if index not in self.GIVERS:
            return sum(self.attempt(state, lambda: self.store(state, 1_000_000)) for _ in range(4))
        for turn in range(self.TURNS):
            first = 1000 * index + 10 * turn
            fate = ("end", "lose", "give", "die")[int(random.integers(4 if self.may_start_threads() else 3))]
            steps = int(random.integers(1, 4))
            if fate == "die":  # in a thread that ends in its section; whoever is told instead dies of that
                thread = threading.Thread(target=self.attempt, args=(state, lambda: self.die(state, first, steps)))  # noqa: B023
                thread.start()
                thread.join()
            else:
                self.attempt(state, lambda: self.enter(state, first, steps, fate))  # noqa: B023
        state.given.put(None)
        return self.TURNS

    def may_start_threads(self):
        """Not under a schedule, which knows only its own."""
        return not (self.env.is_simulated and simulation.schedule_is_on())

    def attempt(self, state, call):
        """Runs `call`, and counts if it was told of somebody else's section."""
        try:
            call()
        except SectionAbandonedError:
            state.told.append(1)
        return 1

    def store(self, state, value):
        launch(state.stream, self.env.one, self.env.append, state.log, value)
        state.rows.append((value, 1))

    def fill_row(self, state, first, steps):
        for step in range(steps):
            launch(state.stream, self.env.one, self.env.append, state.log, first + step)
        state.rows.append((first, steps))

    def enter(self, state, first, steps, fate):
        section = state.stream.exclusive()
        section.__enter__()
        self.fill_row(state, first, steps)
        if fate == "end":
            section.__exit__(None, None, None)
        elif fate == "give":
            ended = Event()
            state.given.put((section, ended))
            del section
            for _ in range(3):  # in this thread's section still, or in nobody's
                self.attempt(state, lambda: self.store(state, 1_000_000))
            ended.wait()
        else:
            state.lost.append(1)  # with the last reference

    def die(self, state, first, steps):
        section = state.stream.exclusive()
        section.__enter__()
        state.dead.append(section)  # so that it is the thread's end that counts
        self.fill_row(state, first, steps)
        state.lost.append(1)

    def end_those_given(self, state):
        left = len(self.GIVERS)
        while left:
            given = state.given.get()
            if given is None:
                left -= 1
                continue
            section, ended = given
            section.__exit__(None, None, None)
            ended.set()
        return self.TURNS

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
        state.log.close()
        state.stream.close()
