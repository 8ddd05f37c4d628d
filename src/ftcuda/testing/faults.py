"""Faults for the simulated driver: the n-th call of an entry point fails, waits, or ends its context."""

from contextlib import contextmanager

from ftcuda.testing import simulation


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

    def release(self) -> None:
        """Lets waiting calls go and removes the fault."""
        simulation.release_fault(self._number)


@contextmanager
def failing(entry: str, code: int, *, nth: int = 1, thread: int = 0):
    """For its block, the `nth` call of `entry` from now on answers `code` and does nothing else.

    Parameters
    ----------
    entry : str
        Exported name, for instance ``"cuMemAllocFromPoolAsync"``.
    code : int
        A ``CUresult``.
    nth : int
        1 is the next call.
    thread : int
        From `simulation.this_thread`; 0 is any.
    """
    yield from _planned(entry, "fail", code, nth, thread)


@contextmanager
def holding(entry: str, *, nth: int = 1, thread: int = 0):
    """For its block, the `nth` call of `entry` waits until the fault is released or the block ends."""
    yield from _planned(entry, "hold", 0, nth, thread)


@contextmanager
def poisoning(entry: str, code: int, *, nth: int = 1, thread: int = 0):
    """For its block, the `nth` call of `entry` ends the current context with `code`."""
    yield from _planned(entry, "poison", code, nth, thread)


def _planned(entry, action, value, nth, thread):
    fault = Fault(simulation.add_fault(entry, nth, thread, action, value))
    try:
        yield fault
    finally:
        fault.release()
