"""How a coroutine waits: by a future of its asyncio loop, or as a task of trio."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any


def settle(future: Any, error: BaseException | None) -> None:
    """Ends a future, in its loop's thread, unless it was cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def resumed(future: Any, subject: object) -> Generator[Any, None, object]:
    """Waits for the future; what was awaited comes of it."""
    yield from future.__await__()
    return subject


class LoopWait:
    """A wait in an asyncio loop that takes no readers, and is told by another thread."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self.future = loop.create_future()

    def tell(self, error: BaseException | None) -> None:
        """Called by the other thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(settle, self.future, error)


class TrioWait:
    """A wait in a task of trio, which is told by another thread."""

    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._task: Any = None
        self._is_over = False
        self._waits = False
        self._error: BaseException | None = None

    def tell(self, error: BaseException | None) -> None:
        """Called by the other thread."""
        with suppress(self._trio.RunFinishedError):  # nobody waits any more
            self._token.run_sync_soon(self._end, error)

    def _end(self, error: BaseException | None) -> None:
        self._is_over, self._error = True, error
        if self._waits:
            self._waits = False
            self._trio.lowlevel.reschedule(self._task)

    def _abort(self, _: object) -> Any:
        self._waits = False
        return self._trio.lowlevel.Abort.SUCCEEDED

    def resumed(self, subject: object) -> Generator[Any, Any, object]:
        """Waits; what was awaited comes of it."""
        if self._is_over:
            yield from self._trio.lowlevel.checkpoint().__await__()
        else:
            self._task = self._trio.lowlevel.current_task()
            self._waits = True
            yield from self._trio.lowlevel.wait_task_rescheduled(self._abort).__await__()
        if self._error is not None:
            raise self._error
        return subject
