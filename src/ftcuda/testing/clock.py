"""Time that a test moves, for limits and for work that takes time. Needs the simulated driver."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from operator import index

from ftcuda import Stream
from ftcuda.testing import simulation


class Clock:
    """The simulated time. Made by :func:`simulated_clock`. When its block has ended, every method raises RuntimeError.

    Thread safety of every method: atomic. Of several threads that advance the clock at once each moves it in its turn.
    """

    def __init__(self) -> None:
        self._has_ended = False

    def _check(self) -> None:
        if self._has_ended:
            raise RuntimeError("the block of this clock has ended")

    def now(self) -> float:
        """Returns the seconds since the block began."""
        self._check()
        return simulation.clock_now() / 1e9

    @property
    def waiting(self) -> int:
        """Threads that wait in ftcuda, asked in vain since the clock was last moved, and wait on.

        Those that a schedule runs do not count.
        """
        self._check()
        return simulation.clock_waiting()

    def wait_for_waiting(self, threads: int = 1, *, timeout: float = 60.0) -> None:
        """Returns when at least so many threads wait, as `waiting` counts them.

        Parameters
        ----------
        threads : int
        timeout : float
            Seconds of the real time.

        Raises
        ------
        TimeoutError
            Fewer do.
        """
        self._check()
        if not simulation.clock_wait(checked_count(threads), checked_timeout(timeout)):
            raise TimeoutError(f"{self.waiting} threads wait, and not {threads}, after {timeout} seconds")

    def advance(self, seconds: float, *, waiting: int = 0, timeout: float = 60.0) -> None:
        """Moves the clock, and returns when all threads that waited have seen it: they have gone on, or wait again.

        So `waiting` tells without luck whose time is not over yet. A thread that a schedule runs returns at once.

        Parameters
        ----------
        seconds : float
            Simulated ones, from 0 up.
        waiting : int
            So many threads are to wait before the clock is moved.
        timeout : float
            Seconds of the real time.

        Raises
        ------
        TimeoutError
            Fewer threads wait; or one that waited does neither.
        ValueError
            The clock ends after nine billion seconds, in all blocks of a process.
        """
        self._check()
        nanoseconds = in_nanoseconds(seconds)
        if checked_count(waiting):
            self.wait_for_waiting(waiting, timeout=timeout)
        if not simulation.clock_advance(nanoseconds, checked_timeout(timeout)):
            raise TimeoutError(f"a thread that waits has not asked again after {timeout} seconds")

    def delay(self, stream: Stream, seconds: float) -> None:
        """Submits work that takes so long: it is done when the clock was moved so far since it began.

        What is left of it when the block ends takes no time.

        Parameters
        ----------
        stream : Stream
        seconds : float
            Simulated ones, from 0 up.
        """
        self._check()
        if not isinstance(stream, Stream):
            raise TypeError(f"stream must be a Stream, not {type(stream).__name__}")
        simulation.clock_delay(stream.handle, in_nanoseconds(seconds))


def in_nanoseconds(seconds: float) -> int:
    """Returns a span as the driver counts it."""
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        raise TypeError(f"seconds must be a number, not {type(seconds).__name__}")
    if not 0 <= seconds <= 1e9:
        raise ValueError(f"seconds must be from 0 to a billion, not {seconds!r}")
    return round(seconds * 1e9)


def checked_count(threads: int) -> int:
    """Returns a number of threads."""
    if isinstance(threads, bool) or not 0 <= index(threads) < 2**31:
        raise ValueError(f"a number of threads is from 0 up, not {threads!r}")
    return index(threads)


def checked_timeout(timeout: float) -> float:
    """Returns seconds of the real time."""
    if not timeout >= 0:
        raise ValueError(f"timeout must be seconds from 0 up, not {timeout!r}")
    return timeout


@contextmanager
def simulated_clock() -> Iterator[Clock]:
    """For its block, time passes only where a test, or the schedule of :class:`Schedule`, moves the clock.

    Limits of waits, such as ``sync(timeout=)``, are counted by it, and so are the times of events, the clocks of
    kernels and the limit of a schedule. Threads of a schedule have simulated time without it too: when all of them
    wait, the clock jumps to the first limit. What guards a test against hanging, such as `timeout` of :func:`together`
    without a schedule, is real time.

    Yields
    ------
    Clock

    Raises
    ------
    RuntimeError
        Another such block is under way in the process.

    Examples
    --------
    >>> from ftcuda import Device
    >>> from ftcuda.testing import simulated_clock, together
    >>> stream = Device(0).create_stream()
    >>> def wait(index):
    ...     if index == 0:
    ...         return clock.advance(1.0, waiting=1)
    ...     try:
    ...         stream.sync(timeout=1.0)
    ...     except TimeoutError:
    ...         return "too late"
    >>> with simulated_clock() as clock:
    ...     clock.delay(stream, 3.0)
    ...     together(2, wait)
    [None, 'too late']
    """
    simulation.clock_begin()
    clock = Clock()
    try:
        yield clock
    finally:
        clock._has_ended = True
        simulation.clock_end()
