"""The rounds of a race: what `ftcuda_pytest` does when it comes to a test that is marked so."""

from collections.abc import Callable, Container
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType

import pytest

from ftcuda import driver_info
from ftcuda.testing.locks import known_locks
from ftcuda.testing.schedule import DeadlockError, Schedule, last_trace
from ftcuda.testing.switching import switch_points
from ftcuda.testing.together import together

HERE = Path(__file__).parent
# By turns, for odd and for even seeds. A random walk finds what a few switches at the right places show, such as a lost
# update, within some rounds; that one thread stays behind for long, only priorities find.
DEFAULTS = ("pct:10", "random")


@dataclass(frozen=True)
class Plan:
    """How often a test races, with how many threads, and who decides which of them runs.

    Attributes
    ----------
    threads : int
    seeds : range
        One round for each.
    schedule : str, optional
        As `Schedule.parse` reads it; or ``free``. None: the default.
    timeout : float
        Seconds of a round.
    command : str
        What replays a round, up to its seed.
    """

    threads: int
    seeds: range
    schedule: str | None
    timeout: float
    command: str


class Race:
    """What the fixture `race` gives: runs a function in threads at once, and has the randomness of the round.

    Attributes
    ----------
    threads : int
    seed : int
        Of the round.
    random : random.Random
        For the test itself; for a thread there is `random_of`.
    is_scheduled : bool
        Whether the seed also decides which thread runs when.

    Thread safety: main thread, but for `random_of`, which is shared.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.is_scheduled: bool = plan.schedule != "free" and driver_info().simulated
        self.threads: int = plan.threads
        self._begin(plan.seeds[0])

    def _begin(self, seed: int) -> None:
        self.seed: int = seed
        self.random: Random = Random(seed)
        self._schedule: Schedule | None = None
        if self.is_scheduled:
            self._schedule = Schedule.parse(self._plan.schedule or DEFAULTS[seed % 2], seed)
        self._has_run: bool = False

    def random_of(self, index: int) -> Random:
        """Returns a new generator for thread `index`: the same in each run of the round."""
        return Random(f"{self.seed} {index}")

    def __call__[Result](self, function: Callable[..., Result], *arguments: object) -> list[Result]:
        """Runs `function(index, *arguments)` in all threads at once.

        Returns
        -------
        list
            What each thread returned, by index.

        Raises
        ------
        BaseException
            What one thread raised; a group if several did. If some raised and others skipped the test, only what was
            raised.
        DeadlockError, TimeoutError
            As :func:`together` does.
        """
        __tracebackhide__ = True
        self._has_run = True
        try:
            return together(self.threads, function, *arguments, timeout=self._plan.timeout, schedule=self._schedule)
        except BaseExceptionGroup as group:
            raised = what_to_raise(group)
        except (DeadlockError, TimeoutError) as hang:  # where it was raised tells nothing
            raised = hang.with_traceback(None)
        raise raised

    def run_round(self, seed: int, test: Callable[[], object]) -> bool:
        """Runs one round: what it raises gets a note that says how to replay it. Whether anything was raced."""
        __tracebackhide__ = True
        self._begin(seed)
        try:
            test()
        except BaseException as failure:
            if is_outcome(failure) or isinstance(failure, (KeyboardInterrupt, pytest.exit.Exception)):
                raise
            note = self._note()
            if explain(failure, note):
                raise
            raise AssertionError(f"{type(failure).__name__}: {failure}\n{note}") from failure
        return self._has_run

    def _note(self) -> str:
        seeds = self._plan.seeds
        said = f"race: round {self.seed - seeds.start + 1} of {len(seeds)}, seed {self.seed}, {self.threads} threads"
        again = f"{self._plan.command} --race-seed {self.seed}"
        if self._schedule is None:
            return f"{said}, free\nThe seed repeats what the threads do, and not when:\n{again}"
        if self._has_run:
            steps, trace = last_trace()
            said += f", {self._plan.schedule or DEFAULTS[self.seed % 2]}, {steps} steps, trace {trace:#018x}"
        return f"{said}\nAgain:\n{again}"


def run(race: Race, test: Callable[[], object], files: Container[str]) -> None:
    """Runs all rounds.

    Parameters
    ----------
    race : Race
    test : callable
        One round.
    files : container of str
        Whose code has switch points and known locks under a schedule.

    Thread safety: main thread.
    """
    __tracebackhide__ = True
    with ExitStack() as stack:
        if race.is_scheduled:
            stack.enter_context(known_locks(files))
            stack.enter_context(switch_points(files))
        for seed in race._plan.seeds:
            if not race.run_round(seed, test):
                pytest.fail(
                    "the test, or a fixture of it, takes `race` and never calls it: nothing was raced", pytrace=False
                )


def is_outcome(failure: BaseException) -> bool:
    """Whether it is `pytest.skip()` or `pytest.xfail()`, and so no failure."""
    return isinstance(failure, (pytest.skip.Exception, pytest.xfail.Exception))


def what_to_raise(group: BaseExceptionGroup) -> BaseException:
    """Returns the failure of a group, if there is one; the first outcome, if there is none; else the failures."""
    failures = [each for each in group.exceptions if not is_outcome(each)]
    if len(failures) > 1:
        raised = BaseExceptionGroup(group.message, failures)
        for note in getattr(group, "__notes__", []):
            raised.add_note(note)
        return raised
    (raised,) = failures or group.exceptions[:1]
    if is_outcome(raised):
        raised.__notes__ = []  # a reason is one line
    return raised.with_traceback(without_ours(raised.__traceback__))


def without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Returns a traceback from the first frame on that is the user's."""
    first = traceback
    while first is not None and Path(first.tb_frame.f_code.co_filename).is_relative_to(HERE):
        first = first.tb_next
    return first or traceback


def explain(failure: BaseException, note: str) -> bool:
    """Adds a note, in a way that pytest shows. False for an exception that is not to be changed."""
    try:
        if getattr(failure, "pytrace", True):
            failure.add_note(note)
        else:  # of pytest.fail(pytrace=False) it shows only the message
            failure.msg = f"{failure.msg}\n{note}"  # type: ignore[attr-defined]
    except Exception:
        return False
    return True
