"""Limits of waits in Python under a schedule: simulated time, which passes only when nobody can go on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from time import sleep as real_sleep

from ftcuda.testing import simulation

# A thread that asks again has the turn so often in a row, at most, while another could go on: see `patience` of the
# scheduler. With a random walk it is as good as never.
IN_VAIN = 210


class Limits:
    """The time that scheduled threads see in Python, and until when some of them wait.

    A thread that waits with a limit asks again and again. When those that do so have had all turns for long, nobody
    else can go on, and the time jumps to the first limit. One scheduled thread runs at a time, so there is no lock.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """For a new session: nobody waits."""
        self.now: float = monotonic()
        self._limits: list[float] = []
        self._steps = 0
        self._in_vain = 0

    @contextmanager
    def waiting(self, limit: float) -> Iterator[None]:
        """Around the wait of the calling thread."""
        self._limits.append(limit)
        try:
            yield
        finally:
            self._limits = [each for each in self._limits if each is not limit]

    def have_passed(self, limit: float) -> bool:
        """Lets others go on. Whether the limit is over, or the schedule."""
        if limit <= self.now or not simulation.schedule_is_on():
            return True
        steps, _ = simulation.schedule_trace()
        only_asked = steps == self._steps + 1
        self._steps = steps
        self._in_vain = self._in_vain + 1 if only_asked else 0
        if self._in_vain > IN_VAIN * len(self._limits):
            self.now = min(self._limits)
            self._in_vain = 0
        else:
            simulation.schedule_point()
        return False


LIMITS = Limits()


def simulated_monotonic() -> float:
    """As `time.monotonic`; the simulated time for a scheduled thread, but for asyncio, which waits in the real one.

    Thread safety: shared.
    """
    if not simulation.schedule_is_on() or sys._getframe(1).f_globals.get("__name__", "").startswith("asyncio."):
        return monotonic()
    return LIMITS.now


def simulated_sleep(seconds: float, /) -> None:
    """As `time.sleep`; until that simulated time for a scheduled thread. Thread safety: shared."""
    if not simulation.schedule_is_on():
        return real_sleep(seconds)
    limit = LIMITS.now + seconds
    with LIMITS.waiting(limit):
        while not LIMITS.have_passed(limit):
            pass
    return None
