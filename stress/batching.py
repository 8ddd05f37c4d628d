"""``python -m stress.batching``: a batcher at full load, of whose requests some are cancelled, expire or are rejected.

What was sent must be what was answered, cancelled, expired or rejected, to the last request: as the callers saw it, and
as `batcher.statistics` says. Every answer is its request's own rows. Memory stays flat. At the end the batcher is
drained while all threads go on, and loses none.
"""

import argparse
import faulthandler
import sys
import threading
import time
from collections import Counter
from concurrent.futures import CancelledError

import numpy as np

from ftcuda import ClosedError
from ftcuda.errors import QueueFullError, RequestExpiredError
from ftcuda.serving import Batcher
from ftcuda.stress.soak import LIMITS, Curve, Meter
from ftcuda.testing.hazard import Environment

WIDTH = 16  # integers in a row
MANY = 8  # rows of the largest request
TURN = 256  # requests of a thread, before it looks at the clock
SAMPLES = 60  # of memory, with nothing running
LIMIT = 60  # seconds for any wait
# Parts of the requests: cancelled at once; with a deadline that is over at once; with a short one, which may or may not
# be in time; and cancelled late.
CANCELLED, EXPIRED, HURRIED, LATE = 0.05, 0.05, 0.02, 0.02
ENDS = ("answered", "cancelled", "expired", "rejected")
NAMES = {"answered": "done"}  # what statistics call it, where that is something else


class WrongEnd(AssertionError):
    """A request ended otherwise than it had to."""


def copy(batch):
    """Rows are their own answers."""
    batch["y"].copy_from(batch["x"], stream=batch.stream)


class Shared:
    """What all threads share."""

    def __init__(self, env: Environment, options) -> None:
        array = np.int32, (WIDTH,)
        self.batcher = Batcher(
            copy, inputs={"x": array}, outputs={"y": array}, batch_sizes=(1, 8, 64), max_queued=options.queued,
            device=env.device, progress=False,
        )  # fmt: skip
        self.window, self.until, self.is_last = options.window, 0.0, False
        self.meet = threading.Barrier(options.threads + 1, timeout=LIMIT)


class Sender:
    """A thread that sends.

    `ends` counts how its requests ended, and `refused` those that came after the drain began; `late` those that were
    answered, although their deadline had come when they were sent: a batch compares with a time at which it was begun.
    """

    def __init__(self, shared: Shared, seed: int) -> None:
        self._shared, self._random = shared, np.random.default_rng(seed)
        self._rows = self._random.integers(1 << 20, size=(TURN + MANY, WIDTH)).astype(np.int32)
        self.ends: Counter[str] = Counter()
        self.sent = self.refused = self.late = 0
        self.complaints: list[BaseException] = []

    def run(self) -> None:
        try:
            while True:
                self._shared.meet.wait()
                if self._shared.is_last:
                    return
                while not self.refused and time.monotonic() < self._shared.until:
                    self._turn()
                self._shared.meet.wait()
        except BaseException as error:
            self.complaints.append(error)
            self._shared.meet.abort()

    def _turn(self) -> None:
        """Some requests, each with rows that no other one has, and the ends of all of them."""
        self._rows += 1
        choices, counts = self._random.random(TURN).tolist(), self._random.integers(-MANY, MANY + 1, TURN).tolist()
        batcher, window = self._shared.batcher, self._shared.window
        pending: list = []
        for at, choice, count in zip(range(TURN), choices, counts, strict=True):
            deadline = 0 if choice < EXPIRED else None
            if choice > 1 - HURRIED:
                deadline = (1 - choice) / HURRIED / 1000
            rows = self._rows[at] if count <= 0 else self._rows[at : at + count]
            try:
                future = (batcher.submit if count <= 0 else batcher.submit_many)(rows, deadline=deadline)
            except QueueFullError:
                self.sent += 1
                self.ends["rejected"] += 1
                self._end(pending)  # room comes with the ends of others
                pending = []
                continue
            except ClosedError:
                self.refused += 1
                break
            self.sent += 1
            is_cancelled = 0 <= choice - EXPIRED < CANCELLED
            if is_cancelled:
                future.cancel()
            is_late = 0 <= choice - EXPIRED - CANCELLED < LATE
            pending.append((future, rows, deadline, is_cancelled, is_late))
            if len(pending) == window:
                self._end(pending[: window // 2])
                del pending[: window // 2]
        self._end(pending)

    def _end(self, pending) -> None:
        answers, expected = [], []
        for future, rows, deadline, is_cancelled, is_late in pending:
            if is_late:
                future.cancel()
            try:
                answers.append(future.result(LIMIT).ravel())
                expected.append(rows.ravel())
                end = "answered"
            except CancelledError:
                end = "cancelled"
            except RequestExpiredError:
                end = "expired"
            self.ends[end] += 1
            if (end == "cancelled" and not (is_cancelled or is_late)) or (end == "expired" and deadline is None):
                raise WrongEnd(f"a request was {end}, and nobody had said so")
            self.late += end == "answered" and deadline == 0
        if answers and not np.array_equal(np.concatenate(answers), np.concatenate(expected)):
            raise WrongEnd("an answer is not the request's own rows")


def loads(shared: Shared, meter: Meter, seconds: float, curves: dict[str, Curve]) -> None:
    """Full load, but for short rests in which memory is looked at."""
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        shared.until = time.monotonic() + min(max(seconds / SAMPLES, 0.1), seconds - now)
        shared.meet.wait()
        shared.meet.wait()
        for figure, value in meter.read().items():
            curve = curves.setdefault(figure, Curve(figure, LIMITS[figure]))
            curve.seconds.append(time.monotonic() - begun)
            curve.values.append(value)


def drains(shared: Shared) -> None:
    """While all threads send."""
    before = shared.batcher.statistics.requests
    shared.until = time.monotonic() + LIMIT
    shared.meet.wait()
    while shared.batcher.statistics.requests < before + 4 * TURN and not shared.meet.broken:
        time.sleep(0.001)
        if time.monotonic() > shared.until:
            raise WrongEnd("nobody sends")
    shared.batcher.drain(LIMIT)
    shared.meet.wait()
    shared.is_last = True
    shared.meet.wait()


def differences(senders: list[Sender], statistics) -> list[str]:
    """Between what was sent, what the callers saw and what the batcher counted."""
    ends = sum((each.ends for each in senders), Counter())
    sent = sum(each.sent for each in senders)
    found = []
    if sent != sum(ends.values()):
        found.append(f"{sent:,} requests were sent, and {sum(ends.values()):,} ended")
    if sent != statistics.requests + statistics.rejected:
        found.append(f"{sent:,} requests were sent, and {statistics.requests + statistics.rejected:,} counted")
    for end in ENDS:
        if ends[end] != (counted := getattr(statistics, NAMES.get(end, end))):
            found.append(f"callers saw {ends[end]:,} {end}, and the batcher counted {counted:,}")
    if statistics.failed or statistics.queued:
        found.append(f"{statistics.failed:,} failed, and {statistics.queued:,} rows wait after the drain")
    return found


def run(options) -> int:
    env = Environment()
    shared = Shared(env, options)
    senders = [Sender(shared, options.seed + index) for index in range(options.threads)]
    running = [threading.Thread(target=each.run, daemon=True) for each in senders]
    curves: dict[str, Curve] = {}
    begun = time.monotonic()
    for each in running:
        each.start()
    wrong = []
    try:
        loads(shared, Meter(env), options.seconds, curves)
        drains(shared)
    except threading.BrokenBarrierError:
        wrong.append("a thread stopped, or hung")
    except (WrongEnd, TimeoutError) as error:
        shared.meet.abort()
        wrong.append(repr(error))
    took = time.monotonic() - begun
    for each in running:
        each.join(LIMIT)
    wrong += [repr(complaint) for each in senders for complaint in each.complaints]
    wrong += [f"{each.name} hangs" for each in running if each.is_alive()]
    statistics = shared.batcher.statistics
    wrong += differences(senders, statistics)
    sent, ends = sum(each.sent for each in senders), sum((each.ends for each in senders), Counter())
    parts = ", ".join(f"{ends[end]:,} {end} ({ends[end] / max(sent, 1):.1%})" for end in ENDS)
    print(f"{sent:,} requests sent by {options.threads} threads in {took:.1f} s, {sent / took:,.0f}/s: {parts}; "
          f"{sum(each.late for each in senders):,} of these with a deadline that was over, "
          f"{sum(each.refused for each in senders)} refused after the drain began")  # fmt: skip
    print(f"{statistics.batches:,} batches, {statistics.batch_rows / max(statistics.batches, 1):.1f} rows each")
    for curve in curves.values():
        if not curve.is_long_enough():
            print(f"{curve.name}: {curve.values[-1] - curve.values[0]:+,.0f}, too few samples to fit")
            continue
        growth, error = curve.fit()
        print(f"{curve.name}: {curve.values[-1]:,.0f}, fitted growth {growth:+,.0f} +- {error:,.0f} of {curve.limit:,}")
        if not curve.is_flat():
            wrong.append(f"{curve.name} is not flat")
    for each in wrong:
        print(f"wrong: {each}", file=sys.stderr)
    return bool(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stress.batching", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--window", type=int, default=64, help="requests of a thread on their way")
    parser.add_argument("--queued", type=int, default=512, help="rows that may wait; fewer are rejected more often")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.seconds + 5 * LIMIT, exit=True)  # with status 1
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
