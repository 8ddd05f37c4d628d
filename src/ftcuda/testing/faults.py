"""Faults for the simulated driver: the n-th call of an entry point fails, waits, or ends its context.

The functions raise at once, where they are called, what could never apply: ValueError for an entry that the driver does
not have or that cannot fail, for a count below 1, and for a code that is no failure.
"""

import time
from contextlib import AbstractContextManager, contextmanager
from operator import index

from ftcuda.testing import simulation

# They answer without asking the plan of faults: the loader and the errors' own texts depend on them.
UNFAILING = {
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetExportTable",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
}


class Fault:
    """One planned fault. Made by the functions of this module."""

    def __init__(self, number: int) -> None:
        self._number = number

    @property
    def hits(self) -> int:
        """How often it applied so far; 0 after it was released."""
        return simulation.fault_hits(self._number)

    @property
    def waiting(self) -> int:
        """Threads that wait in a held call."""
        return simulation.fault_waiting(self._number)

    def wait(self, timeout: float = 60.0) -> None:
        """Returns when a thread waits in a held call.

        Parameters
        ----------
        timeout : float
            Seconds.

        Raises
        ------
        TimeoutError
            None does.
        """
        end = time.monotonic() + timeout
        while not self.waiting:
            if time.monotonic() > end:
                raise TimeoutError(f"no call was held for {timeout} seconds")
            time.sleep(0.001)

    def release(self) -> None:
        """Lets waiting calls go and removes the fault."""
        simulation.release_fault(self._number)


def failing(entry: str, code: int, *, nth: int = 1, thread: int = 0) -> AbstractContextManager[Fault]:
    """For its block, the `nth` call of `entry` from now on answers `code` and does nothing else.

    Parameters
    ----------
    entry : str
        Exported name, for instance ``"cuMemAllocFromPoolAsync"``; `simulation.entries` has them all.
    code : int
        A ``CUresult`` that is a failure.
    nth : int
        1 is the next call.
    thread : int
        From `simulation.this_thread`; 0 is any.

    Raises
    ------
    ValueError
        It could never apply. The message names the entries that are most like `entry`.
    """
    return planned(entry, "fail", failure(code), nth, thread)


def holding(entry: str, *, nth: int = 1, thread: int = 0, after: bool = False) -> AbstractContextManager[Fault]:
    """For its block, the `nth` call of `entry` waits until the fault is released or the block ends.

    Before it does anything; `after`: when it was done, and before it returns. The rest is as for :func:`failing`.
    """
    return planned(entry, "hold after" if after else "hold", 0, nth, thread)


def poisoning(entry: str, code: int, *, nth: int = 1, thread: int = 0) -> AbstractContextManager[Fault]:
    """For its block, the `nth` call of `entry` ends the current context with `code`.

    The rest is as for :func:`failing`.
    """
    return planned(entry, "poison", failure(code), nth, thread)


def failure(code: int) -> int:
    """Returns `code`, if it is one of a failure."""
    if not 0 < index(code) < 2**31:
        raise ValueError(f"cannot plan a fault: {code} is the CUresult of no failure; those are above 0")
    return index(code)


def planned(entry: str, action: str, code: int, nth: int, thread: int) -> AbstractContextManager[Fault]:
    """Refuses what could never apply; what it returns plans the fault when it is entered."""
    if simulation.known(entry) in UNFAILING:
        raise ValueError(f"cannot plan a fault: {entry} never fails in the simulated driver")
    if not 1 <= index(nth) < 2**64:
        raise ValueError(f"cannot plan a fault: nth is {nth}, and 1 is the next call")
    if not 0 <= index(thread) < 2**64:
        raise ValueError(f"cannot plan a fault: {thread} is no thread's number; see simulation.this_thread()")
    return plan(entry, action, code, index(nth), index(thread))


@contextmanager
def plan(entry: str, action: str, code: int, nth: int, thread: int):
    """For its block, the driver has the fault."""
    fault = Fault(simulation.add_fault(entry, nth, thread, action, code))
    try:
        yield fault
    finally:
        fault.release()
