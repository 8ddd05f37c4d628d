"""The locks of `threading` that a schedule knows, and their place in the code of a test."""

import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ftcuda.testing.limits import simulated_monotonic, simulated_sleep
from ftcuda.testing.schedule import Lock, Waitable

REAL_LOCK, REAL_CONDITION = threading.Lock, threading.Condition


class RLock(Lock):
    """As `threading.RLock`, for scheduled threads too. Thread safety of every method: atomic."""

    def __init__(self) -> None:
        super().__init__()
        self._owner = 0  # no thread has this number
        self._depth = 0

    def _take(self) -> bool:
        if not self._is_owned() and not super()._take():
            return False
        self._owner = threading.get_ident()
        self._depth += 1
        return True

    def release(self) -> None:
        """Lets the lock go, if it was taken no more than once."""
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        self._depth -= 1
        if self._depth == 0:
            self._owner = 0
            super().release()

    def _is_owned(self) -> bool:
        return self._owner == threading.get_ident()

    def _release_save(self) -> int:
        depth, self._depth = self._depth, 1
        self.release()
        return depth

    def _acquire_restore(self, depth: int) -> None:
        self.acquire()
        self._depth = depth


class Condition(Waitable):
    """As `threading.Condition`, for scheduled threads too. Thread safety of every method: atomic."""

    def __init__(self, lock: Any = None) -> None:
        super().__init__()
        self._lock = RLock() if lock is None else lock
        self.acquire: Callable[..., bool] = self._lock.acquire
        self.release: Callable[[], None] = self._lock.release
        self._waiters: deque[object] = deque()

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._lock.__exit__(*exception)

    def _check(self) -> None:
        is_owned = getattr(self._lock, "_is_owned", self._lock.locked if hasattr(self._lock, "locked") else None)
        if is_owned is not None and not is_owned():
            raise RuntimeError("cannot wait or notify on un-acquired lock")

    def wait(self, timeout: float | None = None) -> bool:
        """Lets the lock go until a `notify`, and takes it again. False if the time ran out."""
        self._check()
        waiter = object()
        self._waiters.append(waiter)
        depth = self._lock._release_save() if hasattr(self._lock, "_release_save") else self._lock.release()
        try:
            return self._until(lambda: waiter not in self._waiters, timeout)
        finally:
            self._lock.acquire() if depth is None else self._lock._acquire_restore(depth)
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def wait_for[Result](self, predicate: Callable[[], Result], timeout: float | None = None) -> Result:
        """Waits until `predicate` is true; returns what it returned last."""
        limit = None if timeout is None else simulated_monotonic() + timeout
        while not (result := predicate()):
            left = None if limit is None else limit - simulated_monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        """Lets `n` threads go on that wait, those first that came first."""
        self._check()
        for _ in range(min(n, len(self._waiters))):
            self._waiters.popleft()
        with self._condition:
            self._changed()

    def notify_all(self) -> None:
        """Lets all threads go on that wait."""
        self.notify(len(self._waiters))


# What stands where in the standard library. Events, semaphores, barriers, queues and futures are made from these.
PLACES: list[tuple[ModuleType, str, Any, Any]] = [
    (module, name, stand_in, getattr(module, name))
    for module, name, stand_in in [
        (threading, "Lock", Lock),
        (threading, "RLock", RLock),
        (threading, "Condition", Condition),
        (threading, "_time", simulated_monotonic),
        (queue, "SimpleQueue", queue._PySimpleQueue),  # type: ignore[attr-defined]
        (queue, "time", simulated_monotonic),
        (time, "sleep", simulated_sleep),
        (time, "monotonic", simulated_monotonic),
    ]
]


def restore() -> None:
    """Puts back what `monkeypatch` took for the real thing when a race was under way. Thread safety: main thread."""
    for module, name, stand_in, real in PLACES:
        if getattr(module, name) is stand_in:
            setattr(module, name, real)


@contextmanager
def known_locks(files: Container[str]) -> Iterator[None]:
    """For its block, what `threading`, `queue` and `time` offer are things that a schedule knows.

    So are the names that modules of `files` have taken from there (``from threading import Lock``). Locks that were
    made before stay what they are, and so do those made in the block after it: they work without a schedule too. When
    the block has ended all names are what they were, also in modules that were first imported in it.

    Parameters
    ----------
    files : container of str

    Thread safety: main thread. The names are the process's.
    """
    before = set(sys.modules)
    stand_ins = {id(real): stand_in for _, _, stand_in, real in PLACES}
    reals = {id(stand_in): real for _, _, stand_in, real in PLACES}
    # Where a fixture has put something of its own, it stays.
    changed = [(module, name, real) for module, name, _, real in PLACES if getattr(module, name) is real]
    begin_thread = threading.Thread.__init__
    for module in list(sys.modules.values()):
        if vars(module).get("__file__") in files:
            changed += [(module, name, thing) for name, thing in list(vars(module).items()) if id(thing) in stand_ins]

    def begin(self: threading.Thread, *arguments: Any, **options: Any) -> None:
        """Who starts a thread waits for it at a real event: the new thread is not scheduled."""
        begin_thread(self, *arguments, **options)
        self._started._cond = REAL_CONDITION(REAL_LOCK())  # type: ignore[attr-defined]

    try:
        for module, name, thing in changed:
            setattr(module, name, stand_ins[id(thing)])
        threading.Thread.__init__ = begin  # type: ignore[method-assign]
        yield
    finally:
        threading.Thread.__init__ = begin_thread  # type: ignore[method-assign]
        for module, name, thing in changed:
            setattr(module, name, thing)
        for key in set(sys.modules) - before:
            for name, thing in list(vars(sys.modules[key]).items()):
                if id(thing) in reals and not key.startswith("ftcuda."):
                    setattr(sys.modules[key], name, reals[id(thing)])
