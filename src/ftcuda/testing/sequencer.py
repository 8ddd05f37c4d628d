"""Steps in a fixed order across threads."""

import threading
from contextlib import contextmanager


class Sequencer:
    """Makes threads take numbered steps in order, for exact interleavings.

    The block of ``with sequencer.step(3):`` runs after those of steps 1 and 2 have ended. Each number is taken once.
    """

    def __init__(self, timeout: float = 60.0) -> None:
        self._condition = threading.Condition()
        self._taken = 0
        self._timeout = timeout

    @contextmanager
    def step(self, number: int):
        """Waits for the steps before `number`, and takes it with its block. Thread safety: shared."""
        with self._condition:
            if not self._condition.wait_for(lambda: self._taken >= number - 1, self._timeout):
                raise TimeoutError(f"step {number} waited for step {self._taken + 1}, which nobody took")
            if self._taken >= number:
                raise ValueError(f"step {number} was taken already")
        try:
            yield
        finally:
            with self._condition:
                self._taken = number
                self._condition.notify_all()
