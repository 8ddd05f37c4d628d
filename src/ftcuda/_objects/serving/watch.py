"""What `concurrent.futures` asks of its futures, for those who call `wait` and `as_completed`."""

from threading import Condition
from typing import Any


class Watch:
    """The condition and the waiters of a future, once somebody asks for them.

    Who holds the condition sees the future as it is, until it lets go of it: a future that ends meanwhile is told of
    after that.
    """

    def __init__(self, is_over: bool) -> None:
        self.condition = Condition()
        self.waiters: list[Any] = []
        self.is_over = is_over

    def tell(self, future: Any) -> None:
        """Called when the future is over."""
        with self.condition:
            self.is_over = True
            for waiter in self.waiters:
                if future.cancelled():
                    waiter.add_cancelled(future)
                elif future.exception() is not None:
                    waiter.add_exception(future)
                else:
                    waiter.add_result(future)
            self.condition.notify_all()
