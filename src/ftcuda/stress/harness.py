"""Running hazards: rounds by seed, each checked, each repeatable."""

import faulthandler
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ftcuda.stress.program import Program
from ftcuda.testing import DeadlockError, Schedule, together
from ftcuda.testing.hazard import Environment, Hazard, ProcessHazard
from ftcuda.testing.schedule import last_trace

GRACE = 10.0  # seconds after a round's timeout until the process ends by force


@dataclass
class Result:
    """What became of one hazard."""

    name: str
    rounds: int = 0
    operations: int = 0
    seconds: float = 0.0
    covered: int = 0  # cases tried, of `cases`; both 0 for hazards of one case
    cases: int = 0
    interleavings: int = 0  # different ones, by their traces; 0 if nothing was scheduled
    skipped: str = ""
    failure: str = ""
    hung: bool = False  # threads of it may be stuck for ever


class Runner:
    """Runs rounds of hazards and keeps their results."""

    def __init__(
        self, program: Program, env: Environment, threads: int, schedule: Schedule | None, timeout: float
    ) -> None:
        self._program, self._env, self._threads, self._schedule = program, env, threads, schedule
        self.timeout: float = timeout
        self._hazards: dict[str, Hazard] = {}
        self._traces: dict[str, set[int]] = {}
        self.results: dict[str, Result] = {}

    def prepare(self, name: str) -> bool:
        """Makes a hazard ready. False if it cannot run here; its result then says why."""
        hazard = self._program.find(name)(self._env)
        hazard.timeout = self.timeout
        result = self.results[name] = Result(name)
        if hazard.simulated_only and not self._env.is_simulated:
            result.skipped = f"needs the simulated driver: {hazard.simulated_only}"
            return False
        if hazard.unscheduled and self._schedule:
            result.skipped = f"not under a schedule: {hazard.unscheduled}"
            return False
        self._hazards[name] = hazard
        self._traces[name] = set()
        return True

    def cases(self, name: str) -> int:
        """Returns how many rounds a hazard needs to try each of its cases."""
        coverage = self._hazards[name].coverage()
        return coverage[1] if coverage else 1

    def is_process(self, name: str) -> bool:
        """Whether a hazard starts processes."""
        return isinstance(self._hazards[name], ProcessHazard)

    def round(self, name: str, seed: int) -> bool:
        """Runs one round. False if it failed; the result then says how and how to repeat it."""
        hazard, result = self._hazards[name], self.results[name]
        threads = max(self._threads, hazard.threads)
        begin = time.monotonic()

        def once() -> list[int]:
            state = hazard.round(seed, np.random.default_rng(seed))
            counts = together(
                threads,
                lambda index: number_of(hazard.act(state, index, np.random.default_rng([seed, index]))),
                timeout=self.timeout,
                schedule=self._schedule and self._schedule.with_seed(seed),
            )
            hazard.check(state)
            self._check_violations()
            return counts

        try:
            with last_resort(self.timeout + GRACE):
                counts = under_seed(name, seed, once)
        except KeyboardInterrupt:
            raise
        except BaseException as failure:
            result.failure = f"{''.join(traceback.format_exception(failure))}{self._how_to_repeat(hazard, name, seed)}"
            result.hung = isinstance(failure, (TimeoutError, DeadlockError))
            return False
        finally:
            result.seconds += time.monotonic() - begin
        result.rounds += 1
        result.operations += sum(counts)
        if self._schedule:
            self._traces[name].add(last_trace()[1])
            result.interleavings = len(self._traces[name])
        if coverage := hazard.coverage():
            result.covered, result.cases = coverage
        return True

    def _how_to_repeat(self, hazard: Hazard, name: str, seed: int) -> str:
        """Returns the command that repeats a round; of one that ran freely, that nothing does, and what may find it."""
        driver = "sim" if self._env.is_simulated else "cuda"
        again = f"{self._program.command} --driver {driver} --threads {self._threads}"
        which = f"--hazard {shlex.quote(name)} --seed {seed}"
        if self._schedule:
            schedule = self._schedule.kind if self._schedule.kind == "random" else f"pct:{self._schedule.depth}"
            steps, trace = last_trace()
            return (
                f"after {steps} steps, trace {trace:#018x}\nrepeat with: {again} --sched {schedule} {which} --seeds 1"
            )
        said = (
            "its threads ran freely, so that nothing repeats it for certain: the seed repeats what they did, not when\n"
            f"most likely to find it again: {again} {which} --seeds 1000"
        )
        if driver == "sim" and not hazard.unscheduled:
            points = "" if has_points() else ", in a build with -Dschedule_points=true"
            said += f"\nor, repeatable once found: {again} --sched pct:10 {which} --seeds 2000{points}"
        return said

    def _check_violations(self) -> None:
        if not self._env.is_simulated:
            return
        from ftcuda.testing import simulation

        if found := simulation.violations():
            simulation.clear_violations()
            raise AssertionError(f"violations: {'; '.join(sorted(set(found)))}")

    def run(
        self, name: str, seed: int, seconds: float | None, seeds: int | None, advance: Callable[[Result], None]
    ) -> None:
        """Runs rounds for a time, but never fewer than try every case once; or a number of seeds."""
        end = None if seeds else time.monotonic() + seconds
        least = seeds or self.cases(name)
        done = 0
        while (done < least or (end is not None and time.monotonic() < end)) and self.round(name, seed + done):
            done += 1
            advance(self.results[name])


def number_of(operations: object) -> int:
    """Returns what `act` returned, which must be a number."""
    if isinstance(operations, int) and operations >= 0:
        return operations
    raise TypeError(f"act must return the number of operations, an int from 0 up, not {operations!r}")


def has_points() -> bool:
    """Whether schedules switch inside ftcuda's core too, at its atomics and locks."""
    from ftcuda.testing import simulation

    return simulation.has_schedule_points()


@contextmanager
def last_resort(seconds: float) -> Iterator[None]:
    """Ends the process with status 1 and all stacks on standard error, if the block does not end in time.

    Needs nobody to run Python: not even a thread that hangs with the GIL keeps it from that.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def under_seed[Answer](name: str, seed: int, call: Callable[[], Answer]) -> Answer:
    """Returns `call()`, made in a frame whose file and line tell the seed: the stacks of an ended process show it.

    The line tells the last digits, because CPython without the GIL keeps every file name for ever.
    """
    base = (seed - 1) // 1000 * 1000
    names: dict[str, Any] = {"call": call}
    exec(compile("\n" * (seed - base - 1) + "result = call()", f"<hazard {name}, seed {base} + line>", "exec"), names)
    return names["result"]
