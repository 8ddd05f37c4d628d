"""Who makes what is missing: one thread at a time, while those who want the same wait."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local


class Turn:
    """Of one key."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0


class Turns:
    """Turns by key, each for as long as somebody has it or waits for it."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._turns: dict[tuple[int, bytes], Turn] = {}

    @contextmanager
    def of(self, key: tuple[int, bytes]) -> Iterator[None]:
        """Waits for the turn, and gives it back."""
        with self._lock:
            turn = self._turns.setdefault(key, Turn())
            turn.users += 1
        try:
            with turn.lock:
                yield
        finally:
            if os.getpid() == self._process:  # else it is a copy, whose lock a thread had that is not here
                with self._lock:
                    turn.users -= 1
                    if turn.users == 0:
                        del self._turns[key]


TURNS: dict[int, Turns] = {}  # by process: a forked child has none of the threads that would give its parent's back
MINE = local()  # `is_inside`: the thread has a turn, or is about to


@contextmanager
def turn_of(owner: object, key: bytes) -> Iterator[bool]:
    """For a block, the turn of a key of an object, which is alive meanwhile. Gives whether the thread has it.

    A thread that has a turn gets no other one, and waits for nobody: in a finalizer, or in the `write` of a log, it
    would wait for one who may wait for it.
    """
    if getattr(MINE, "is_inside", False):
        yield False
        return
    MINE.is_inside = True
    try:
        with TURNS.setdefault(os.getpid(), Turns()).of((id(owner), key)):
            yield True
    finally:
        MINE.is_inside = False
