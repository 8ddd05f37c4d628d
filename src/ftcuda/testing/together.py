"""Running threads together."""

import faulthandler
import gc
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager

from ftcuda.testing import simulation
from ftcuda.testing.schedule import Schedule, last_trace


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
        Seconds after which the stacks of all threads are printed and the call fails.
    schedule : Schedule, optional
        Runs one thread at a time; by default as ``FTCUDA_SIM_SCHED`` and ``FTCUDA_SIM_SEED`` say, freely without them.

    Returns
    -------
    list
        What each thread returned, by index.

    Raises
    ------
    BaseExceptionGroup
        What the threads raised, all of it; `SystemExit` and the like too, and what a destructor could not raise. With a
        schedule it has a note that names the schedule, its seed and its trace.
    TimeoutError
        Not all threads ended.
    DeadlockError
        No scheduled thread could go on.
    """
    schedule = schedule or Schedule.from_environment()
    results = [None] * threads
    failures = []
    start = Free(threads, timeout) if schedule is None else Scheduled(threads, schedule)

    def run(index: int) -> None:
        try:
            with start.part(index):
                results[index] = function(index, *arguments)
        except BaseException as failure:
            failures.append(failure)

    workers = [
        threading.Thread(target=run, args=(index,), name=f"together-{index}", daemon=True) for index in range(threads)
    ]
    with unraisable_as(failures), start.session():
        for worker in workers:
            worker.start()
        start.wait()
        for worker in workers:
            worker.join(timeout)
        stuck = [worker.name for worker in workers if worker.is_alive()]
        if stuck:
            faulthandler.dump_traceback(file=sys.__stderr__, all_threads=True)
            raise TimeoutError(f"{', '.join(stuck)} did not end within {timeout} s; the stacks are on standard error")
    if failures:
        group = BaseExceptionGroup(f"{len(failures)} failures in {threads} threads", failures)
        if schedule is not None:
            steps, trace = last_trace()
            group.add_note(f"{schedule}, {steps} steps, trace {trace:#018x}")
        raise group
    return results


@contextmanager
def unraisable_as(failures: list):
    """For its block, what `sys.unraisablehook` would print becomes a failure."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: failures.append(unraisable.exc_value)
    try:
        yield
    finally:
        sys.unraisablehook = before


class Free:
    """Threads that run as the system lets them, from one barrier."""

    def __init__(self, threads: int, timeout: float) -> None:
        self._barrier = threading.Barrier(threads)
        self._timeout = timeout

    @contextmanager
    def session(self):
        """Around all threads."""
        yield

    @contextmanager
    def part(self, index: int):
        """Around the part of thread `index`."""
        self._barrier.wait(self._timeout)
        yield

    def wait(self) -> None:
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

    @contextmanager
    def part(self, index: int):
        """Around the part of thread `index`."""
        simulation.schedule_enter(index)
        try:
            yield
        finally:
            simulation.schedule_leave()

    def wait(self) -> None:
        """Waits until all threads have left the session."""
        self._schedule.wait()
