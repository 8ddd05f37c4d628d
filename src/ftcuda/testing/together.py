"""Running threads together."""

import gc
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import Any

from ftcuda.testing import simulation
from ftcuda.testing.schedule import DeadlockError, Schedule, last_trace
from ftcuda.testing.stacks import all_stacks


def together[Result](
    threads: int,
    function: Callable[..., Result],
    *arguments: object,
    timeout: float = 60.0,
    schedule: Schedule | None = None,
) -> list[Result]:
    """Runs `function(index, *arguments)` in `threads` threads that start at one barrier.

    Parameters
    ----------
    threads : int
    function : callable
        Gets the thread's index, from 0.
    *arguments
        Passed on.
    timeout : float
        Seconds in all, for all threads, after which the call fails. Real ones; with a schedule, in the block of
        :func:`simulated_clock`, the session's are those by which the test moves the clock.
    schedule : Schedule, optional
        Runs one thread at a time; by default as ``FTCUDA_SIM_SCHED`` and ``FTCUDA_SIM_SEED`` say, freely without them.

    Returns
    -------
    list
        What each thread returned, by index.

    Raises
    ------
    BaseExceptionGroup
        What the threads raised, all of it, each with a note that names the thread; `SystemExit` and the like too, and
        what a destructor could not raise. With a schedule it has a note that names the schedule, its seed and its
        trace.
    TimeoutError
        Not all threads ended in time. The message holds the stacks of all threads; what others had raised by then is
        the cause. If a thread hangs inside a library without having detached from the interpreter, no stack can be
        read: the process ends 5 s later, with the stacks on standard error. If there is a GIL, that thread has it, and
        only what needs no interpreter can tell, as :func:`faulthandler.dump_traceback_later` does.
    DeadlockError
        No scheduled thread could go on. The message says where all stood, and holds their stacks.
    """
    deadline = time.monotonic() + timeout
    schedule = schedule or Schedule.from_environment()
    results = [None] * threads
    failures = []
    start = Free(threads, deadline) if schedule is None else Scheduled(threads, schedule)

    def run(index: int) -> None:
        CALLS.join(failures)
        try:
            start.enter(index)
            try:  # no context manager of a generator, which would change the exception
                results[index] = function(index, *arguments)
            finally:
                start.leave()
        except BaseException as failure:
            failures.append(failure)
            with suppress(Exception):  # some exceptions are not to be changed
                failure.add_note(f"in thread together-{index}")

    def group() -> BaseExceptionGroup:
        return BaseExceptionGroup(f"{len(failures)} failures in {threads} threads", list(failures))

    workers = [
        threading.Thread(target=run, args=(index,), name=f"together-{index}", daemon=True) for index in range(threads)
    ]
    with CALLS.under_way(failures), start.session():
        for worker in workers:
            worker.start()
        try:
            start.wait(timeout)
            for worker in workers:
                worker.join(max(deadline - time.monotonic(), 0))
            stuck = [worker.name for worker in workers if worker.is_alive()]
            if stuck:
                raise TimeoutError(f"{', '.join(stuck)} did not end within {timeout} s:\n{all_stacks()}")
        except (DeadlockError, TimeoutError) as hang:
            if failures:
                raise hang from group()
            raise
    if failures:
        raised = group()
        if schedule is not None:
            steps, trace = last_trace()
            raised.add_note(f"{schedule}, {steps} steps, trace {trace:#018x}")
        raise raised
    return results


class Calls:
    """The calls of :func:`together` under way. What `sys.unraisablehook` would print meanwhile becomes their failure.

    That of the call whose thread it was; from a thread that is part of none, that of all.
    """

    def __init__(self) -> None:
        self._of_thread = threading.local()  # `failures`: those of the call that the thread is part of
        self._lock = threading.Lock()
        self._failures: list[list[BaseException]] = []  # guarded by the lock, as the hook is
        self._hook_before = sys.unraisablehook

    @contextmanager
    def under_way(self, failures: list[BaseException]):
        """For its block, the call to which `failures` belong is under way."""
        with self._lock:
            if not self._failures:
                self._hook_before, sys.unraisablehook = sys.unraisablehook, self._note
            self._failures.append(failures)
        try:
            yield
        finally:
            with self._lock:
                self._failures = [others for others in self._failures if others is not failures]
                if not self._failures:
                    sys.unraisablehook = self._hook_before

    def join(self, failures: list[BaseException]) -> None:
        """Makes the calling thread part of the call to which `failures` belong."""
        self._of_thread.failures = failures

    def _note(self, unraisable: Any) -> None:
        mine = getattr(self._of_thread, "failures", None)
        for failures in list(self._failures) if mine is None else [mine]:
            failures.append(unraisable.exc_value)


CALLS = Calls()


class Free:
    """Threads that run as the system lets them, from one barrier."""

    def __init__(self, threads: int, deadline: float) -> None:
        self._barrier = threading.Barrier(threads)
        self._deadline = deadline

    @contextmanager
    def session(self):
        """Around all threads."""
        yield

    def enter(self, index: int) -> None:
        """Begins the part of thread `index`."""
        self._barrier.wait(max(self._deadline - time.monotonic(), 0))

    def leave(self) -> None:
        """Ends it."""

    def wait(self, timeout: float) -> None:
        """Waits for the end, as far as it can be known here."""


class Scheduled:
    """Threads that run one at a time. Garbage is not collected meanwhile, since that happens at no particular place."""

    def __init__(self, threads: int, schedule: Schedule) -> None:
        self._threads, self._schedule = threads, schedule

    @contextmanager
    def session(self):
        """Around all threads."""
        collects = gc.isenabled()
        gc.disable()
        try:
            self._schedule.begin(self._threads)
            yield
        finally:
            if collects:
                gc.enable()

    def enter(self, index: int) -> None:
        """Begins the part of thread `index`."""
        simulation.schedule_enter(index)

    def leave(self) -> None:
        """Ends it."""
        simulation.schedule_leave()

    def wait(self, timeout: float) -> None:
        """Waits until all threads have left the session."""
        self._schedule.wait(timeout)
