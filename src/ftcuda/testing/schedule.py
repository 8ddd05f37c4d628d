"""Replaying interleavings: one thread at a time, switched where a seed says. Needs the simulated driver."""

import itertools
import os
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import index
from threading import Condition, RLock

from ftcuda.testing import simulation
from ftcuda.testing.limits import LIMITS
from ftcuda.testing.settling import empty_caches
from ftcuda.testing.stacks import all_stacks

KINDS = ("random", "pct")
SESSIONS = itertools.count()


class DeadlockError(RuntimeError):
    """No scheduled thread could go on.

    The message says where each of them, and each worker of the device, stood, and who held what it waited for; then
    come the stacks of all threads at that moment.
    """


@dataclass(frozen=True)
class Schedule:
    """Who runs when, for the threads of one :func:`together`.

    Of its threads and the simulated device's workers one runs at a time. At every driver call, before a stream's work,
    between slices of a kernel, and, where ftcuda was built with ``-Dschedule_points=true``, at the atomics and locks of
    its core, the seed decides who goes on. The same seed gives the same run, if the threads do nothing that depends on
    the real time, and wait for each other only through ftcuda or the classes of this module. Limits such as
    ``sync(timeout=)`` are of simulated time: when all wait, it jumps to the first of them. What a context has in store,
    such as idle events, shows too: the first run of a process may differ from the later ones, as a first call does.

    Attributes
    ----------
    kind : {"random", "pct"}
        A random walk; or random priorities that change `depth` - 1 times (Burckhardt and others, ASPLOS 2010).
    depth : int
    seed : int
    """

    kind: str = "random"
    depth: int = 10
    seed: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be 'random' or 'pct', not {self.kind!r}")
        if index(self.depth) < 1:
            raise ValueError(f"depth must be from 1 up, not {self.depth!r}")
        index(self.seed)

    @classmethod
    def parse(cls, text: str, seed: int = 1) -> "Schedule":
        """Reads ``random``, ``pct`` or ``pct:<depth>``. Thread safety: atomic."""
        kind, _, depth = text.partition(":")
        if kind not in KINDS or (depth and (kind != "pct" or not depth.isdecimal() or int(depth) < 1)):
            raise ValueError(f"a schedule is 'random' or 'pct:<depth>', not {text!r}")
        return cls(kind, int(depth or 10), seed)

    @classmethod
    def from_environment(cls) -> "Schedule | None":
        """Reads ``FTCUDA_SIM_SCHED`` and ``FTCUDA_SIM_SEED``; None if there is no such schedule. Thread safety: atomic.

        Each call takes another seed: the n-th one of a process is the same each time the process runs.
        """
        text = os.environ.get("FTCUDA_SIM_SCHED")
        if not text:
            return None
        seed = int(os.environ.get("FTCUDA_SIM_SEED", "1"), 0)
        return cls.parse(text, seed * 1_000_003 + next(SESSIONS))

    def with_seed(self, seed: int) -> "Schedule":
        """Returns the same kind of schedule with another seed. Thread safety: atomic."""
        return replace(self, seed=seed)

    def begin(self, threads: int) -> None:
        """Prepares a session that does not depend on what was before: empties the caches, waits until nothing runs."""
        empty_caches()
        LIMITS.begin()
        simulation.schedule_begin(KINDS.index(self.kind), self.depth, self.seed % 2**64, threads)

    def wait(self, timeout: float = 60.0) -> None:
        """Waits until all threads of the session have left it.

        Parameters
        ----------
        timeout : float
            Seconds of the real time; in the block of :func:`simulated_clock`, those by which the test moves the clock.

        Raises
        ------
        DeadlockError
            None of them can go on.
        TimeoutError
            The time ran out; or the one whose turn it was did nothing for 20 s.

        After either error the threads run freely, and so they do if a signal's handler raises meanwhile.
        """
        try:
            ending = interruptible(lambda: simulation.schedule_wait(timeout))
        except BaseException:
            simulation.schedule_abandon()
            raise
        if ending == "finished":
            return
        try:  # they stand still meanwhile
            where = f"{simulation.schedule_report()}\n{all_stacks()}"
        finally:
            simulation.schedule_abandon()
        if ending == "deadlock":
            raise DeadlockError(f"{self}: nobody can go on:\n{where}")
        if ending == "late":
            raise TimeoutError(f"{self}: not all threads ended within {timeout} s:\n{where}")
        raise TimeoutError(f"{self}: the thread whose turn it was did nothing for 20 s; {why_stuck()}:\n{where}")

    def __str__(self) -> str:
        text = self.kind if self.kind == "random" else f"{self.kind}:{self.depth}"
        return f"schedule {text}, seed {self.seed}"


def interruptible[Answer](call: Callable[[], Answer]) -> Answer:
    """Returns `call()`, made by another thread: this one can run handlers of signals meanwhile."""
    over, answers = allocate_lock(), []

    def make() -> None:
        try:
            answers.append(call())
        finally:
            over.release()

    over.acquire()
    start_new_thread(make, ())
    over.acquire()
    return answers[0]


SUCH_AS = (
    "at a lock of `threading` made before the test or outside of the files that it races: make the lock inside of the "
    'test, use those of ftcuda.testing.schedule, or let the threads run freely (schedule="free" of a race)'
)


def why_stuck() -> str:
    """Returns what a schedule that found nobody to go on to is most likely about."""
    if simulation.has_schedule_points():
        return f"perhaps it waits for another in a way that the schedule does not know, {SUCH_AS}"
    return (
        "this build has no schedule points (-Dschedule_points=true), so that the schedule does not know of ftcuda's "
        f"exclusive sections, nor who loads a module: perhaps it waits for another at one of these, or {SUCH_AS}"
    )


def last_trace() -> tuple[int, int]:
    """Returns how often the last session chose a thread, and a hash of all its choices. Thread safety: atomic."""
    return simulation.schedule_trace()


def point() -> None:
    """Lets another scheduled thread go on, if the seed says so. Thread safety: atomic."""
    simulation.schedule_point()


class Waitable:
    """What the classes below share: waiting for a change in a way that the scheduler knows.

    Scheduled threads park until the next change; other threads wait on a condition.
    """

    def __init__(self) -> None:
        self._condition = Condition(RLock())  # the real ones, also while `threading` has those of locks.py

    def _until(self, attempt: Callable[[], bool], timeout: float | None = None) -> bool:
        """Repeats `attempt`, under the lock, after every change, until it is true; False if the time ran out."""
        if timeout is not None and simulation.schedule_is_on():
            return self._until_limit(attempt, LIMITS.now + timeout)
        while True:
            with self._condition:
                if not simulation.schedule_is_on():
                    return self._condition.wait_for(attempt, timeout)
                if attempt():
                    return True
            self._park()

    def _park(self) -> None:
        simulation.schedule_park(self)

    def _until_limit(self, attempt: Callable[[], bool], limit: float) -> bool:
        """The same for a scheduled thread with a limit: it asks again and again, since it must see the time pass."""
        has_passed = False
        with LIMITS.waiting(limit):
            while True:
                with self._condition:
                    if attempt():
                        return True
                if has_passed:
                    return False
                has_passed = LIMITS.have_passed(limit)

    def _changed(self) -> None:
        """Call it with the lock held."""
        self._condition.notify_all()
        simulation.schedule_unpark(self)


class Lock(Waitable):
    """As `threading.Lock`, for scheduled threads too. Thread safety of every method: atomic."""

    def __init__(self) -> None:
        super().__init__()
        self._held = False

    def _take(self) -> bool:
        free, self._held = not self._held, True
        if free:
            simulation.schedule_hold(self)  # so that a deadlock names the holder
        return free

    def _park(self) -> None:
        simulation.schedule_park_for_holder(self)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Waits until the lock is free and takes it; False if it did not get it at once, or in time."""
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        if not blocking:
            with self._condition:
                return self._take()
        return self._until(self._take, None if timeout == -1 else timeout)

    def release(self) -> None:
        """Lets the lock go."""
        with self._condition:
            if not self._held:
                raise RuntimeError("release of a lock that nobody holds")
            self._held = False
            simulation.schedule_let_go(self)
            self._changed()

    def locked(self) -> bool:
        """Whether a thread holds the lock."""
        return self._held

    def _at_fork_reinit(self) -> None:
        """For the standard library: in the child of a fork nobody holds it."""
        self.__init__()  # type: ignore[misc]

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()


class Event(Waitable):
    """As `threading.Event`, for scheduled threads too. Thread safety of every method: atomic."""

    def __init__(self) -> None:
        super().__init__()
        self._set = False

    def set(self) -> None:
        """Lets all waiting threads go, now and later."""
        with self._condition:
            self._set = True
            self._changed()

    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for `set`. False if the time ran out, which is simulated for scheduled threads."""
        return self._until(self.is_set, timeout)


class Queue[Item](Waitable):
    """As `queue.SimpleQueue`, for scheduled threads too. Thread safety of every method: atomic."""

    def __init__(self) -> None:
        super().__init__()
        self._items: deque[Item] = deque()

    def put(self, item: Item) -> None:
        """Adds an item."""
        with self._condition:
            self._items.append(item)
            self._changed()

    def get(self) -> Item:
        """Waits for an item and takes the oldest."""
        taken = []

        def take() -> bool:
            if self._items:
                taken.append(self._items.popleft())
            return bool(taken)

        self._until(take)
        return taken[0]


class Barrier(Waitable):
    """As `threading.Barrier`, for scheduled threads too. Thread safety of every method: atomic."""

    def __init__(self, parties: int) -> None:
        super().__init__()
        self._parties = parties
        self._arrived = 0

    def wait(self) -> int:
        """Waits until as many threads have come; returns the place of this one."""
        with self._condition:
            place = self._arrived
            self._arrived += 1
            self._changed()
        goal = (place // self._parties + 1) * self._parties
        self._until(lambda: self._arrived >= goal)
        return place % self._parties
