"""Time that a test moves, for limits and for work that takes time. Needs the simulated driver."""

from collections.abc import Iterator
from contextlib import contextmanager

from ftcuda import Stream
from ftcuda.testing import simulation


class Clock:
    """The simulated time. Made by :func:`simulated_clock`; of no use when its block has ended.

    Thread safety of every method: atomic.
    """

    def now(self) -> float:
        """Returns the seconds since the block began."""
        return simulation.clock_now() / 1e9

    @property
    def waiting(self) -> int:
        """Threads that wait in ftcuda, asked in vain since the clock was last moved, and wait on.

        Those that a schedule runs do not count.
        """
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
        if not simulation.clock_wait(threads, timeout):
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
        """
        nanoseconds = in_nanoseconds(seconds)
        if waiting:
            self.wait_for_waiting(waiting, timeout=timeout)
        if not simulation.clock_advance(nanoseconds, timeout):
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
        simulation.clock_delay(stream.handle, in_nanoseconds(seconds))


def in_nanoseconds(seconds: float) -> int:
    """Returns a span as the driver counts it."""
    if not 0 <= seconds <= 1e9:
        raise ValueError(f"the clock moves by seconds from 0 to a billion, not {seconds!r}")
    return round(seconds * 1e9)


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
    try:
        yield Clock()
    finally:
        simulation.clock_end()
