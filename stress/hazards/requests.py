"""Requests to one batcher: some are cancelled, some expire, some fail, and it is drained or closed amid all of them."""

from concurrent.futures import CancelledError
from types import SimpleNamespace

import numpy as np

import ftcuda
from ftcuda.errors import ForwardError, QueueFullError, RequestExpiredError
from ftcuda.serving import Batcher
from ftcuda.testing.hazard import Hazard


def copy(batch):
    """Rows are their own answers."""
    batch["y"].copy_from(batch["x"], stream=batch.stream)


class Requests(Hazard):
    """Each request ends once: with its own rows, or as the one who gave it up, or the batcher, says."""

    oracle = "each answer is the request's own rows; the ends that callers saw are those that the batcher counted"
    unscheduled = "a thread of the batcher's ends requests, and no schedule knows it"

    def round(self, seed, random):
        captures = bool(random.integers(2)) and self.env.device.features.graphs
        batcher = Batcher(
            copy if captures else failing_at_times(),
            inputs={"x": ("int32", (4,))}, outputs={"y": ("int32", (4,))}, batch_sizes=(1, 3, 8), max_queued=16,
            in_flight=1, device=self.env.device, capture=captures, priorities=2,
        )  # fmt: skip
        return SimpleNamespace(batcher=batcher, ends=[], closer=int(random.integers(3)))

    def act(self, state, index, random):
        ends = dict.fromkeys(("done", "failed", "cancelled", "expired", "rejected", "refused"), 0)
        futures = []
        for turn in range(20):
            rows = random.integers(1 << 30, size=(int(random.integers(5)), 4)).astype(np.int32)
            deadline = 0 if turn % 9 == 0 else None
            try:
                future = state.batcher.submit_many(rows, priority=turn % 2, deadline=deadline, timeout=turn % 3 / 100)
            except QueueFullError:
                ends["rejected"] += 1
                continue
            except ftcuda.ClosedError:
                ends["refused"] += 1
                continue
            futures.append((future, rows))
            if turn % 5 == 0:
                future.cancel()
            if turn == 15 and index == 0 and state.closer:
                state.batcher.close() if state.closer == 1 else state.batcher.drain()
        for future, rows in futures:
            ends[self.end_of(future, rows)] += 1
        state.ends.append(ends)
        return 20

    def end_of(self, future, rows):
        try:
            answer = future.result(self.timeout)
        except CancelledError:
            return "cancelled"
        except RequestExpiredError:
            return "expired"
        except (ForwardError, ftcuda.ClosedError):
            return "failed"
        if not np.array_equal(answer, rows):
            raise AssertionError(f"the answer {answer} is not the request's own, {rows}")
        return "done"

    def check(self, state):
        state.batcher.drain()
        counted = state.batcher.statistics
        for name in ("done", "failed", "cancelled", "expired", "rejected"):
            seen = sum(each[name] for each in state.ends)
            if seen != getattr(counted, name):
                raise AssertionError(f"callers saw {seen} {name}, and the batcher counted {getattr(counted, name)}")
        if counted.requests != counted.done + counted.failed + counted.cancelled + counted.expired:
            raise AssertionError(f"requests that did not end once: {counted}")
        if counted.queued:
            raise AssertionError(f"{counted.queued} rows wait in a batcher that is drained")


def failing_at_times():
    """Returns a forward that raises for one batch in seven, when the three sizes of two lanes were tried."""
    turns = iter(range(1 << 62))

    def forward(batch):
        turn = next(turns)
        if turn > 6 and turn % 7 == 0:
            raise ValueError("this batch fails")
        copy(batch)

    return forward
