"""What each thread of a measurement does, by whatever is asked: every answer is compared with numpy's, in bulk.

All that a loop needs comes as arguments: CPython 3.13t takes a lock for each look at a variable of an enclosing
function. And what it calls for each request is its thread's own where that can be: all threads write the count of
references to a function of C that they share, `len` and clocks among them.
"""

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from time import perf_counter_ns as now

import numpy as np

from benchmarks.serving.model import check

LIMIT = 20  # seconds for any wait
BULK = 256  # answers that are looked at together
LATE = 1_000_000_000  # nanoseconds after its end at which a paced loop gives up what it has not sent


def own_clock():
    """Nanoseconds, as `perf_counter_ns` says, by an object of the calling thread's own."""
    return partial(now)


def blocking(ask, rows, answers, end):
    """One request at a time. Returns how many there were, and the nanoseconds of each."""
    clock, taken = own_clock(), []
    took = taken.append
    while clock() < end:
        got = []
        received = got.append
        for row in rows:
            begin = clock()
            received(ask(row))
            took((ended := clock()) - begin)
            if ended >= end:
                break
        check(got, answers[: len(got)])
    return len(taken), taken


def windowed(submit, rows, answers, end, size):
    """With so many requests on their way, or as many as there are rows. `rows` may be blocks of rows."""
    size = min(size, len(rows))
    whole, limit = len(rows) // size * size, LIMIT
    rows, answers = rows[:whole], answers[:whole]
    # For each answer: its place in the window, and what is asked there next.
    plan = [(at % size, rows[(at + size) % whole]) for at in range(whole)]
    window, count = [submit(row) for row in rows[:size]], size
    while now() < end:
        got = []
        received = got.append
        for place, row in plan:
            received(window[place].result(limit))
            window[place] = submit(row)
        check(got, answers)
        count += whole
    check([future.result(limit) for future in window], answers[:size])
    return count, []


def paced(submit, rows, answers, end, gaps):
    """Requests at their times, whatever became of those before. Returns the nanoseconds of each, from its time on.

    `gaps`: nanoseconds between two, repeated. A thread that is behind does not wait, and its delay counts.
    """
    pending, taken, got, places = deque(), [], [], []
    clock, limit, next_one = own_clock(), LIMIT, pending.popleft
    due = clock()
    for place, gap in zip(cycle(range(len(rows))), cycle(gaps), strict=False):
        due += gap
        if due >= end or clock() > end + LATE:
            break
        while True:
            if pending and pending[0][0]():
                _, result, began, where = next_one()
                got.append(result(limit))
                taken.append(clock() - began)
                places.append(where)
            if clock() >= due:
                break
        if len(got) >= BULK:
            check(got, answers[places])
            got, places = [], []
        future = submit(rows[place])
        pending.append((future.done, future.result, due, place))
    for _, result, began, where in pending:
        got.append(result(limit))
        taken.append(clock() - began)
        places.append(where)
    if got:
        check(got, answers[places])
    return len(taken), taken


def in_all(threads: int, prepare, seconds: float, warm_up: float) -> tuple[float, list[int]]:
    """Runs ``prepare(index)(end)`` in all threads at once, a first time to warm up.

    Returns requests a second, from the first one's begin to the last one's end, and the nanoseconds of those that are
    timed. What a thread raises is raised.
    """
    barrier = threading.Barrier(threads)

    def work(index):
        try:
            loop = prepare(index)
            barrier.wait(LIMIT)
            loop(now() + int(warm_up * 1e9))
            barrier.wait(LIMIT)
            begin = now()
            count, taken = loop(begin + int(seconds * 1e9))
            return begin, now(), count, taken
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(work, index) for index in range(threads)]
    errors = [error for job in jobs if (error := job.exception()) is not None]
    if errors:
        raise next((each for each in errors if not isinstance(each, threading.BrokenBarrierError)), errors[0])
    spans = [job.result() for job in jobs]
    span = max(end for _, end, _, _ in spans) - min(begin for begin, _, _, _ in spans)
    return sum(count for _, _, count, _ in spans) / span * 1e9, [each for *_, taken in spans for each in taken]


def milliseconds(taken: list[int]) -> list[float]:
    """The percentiles from 1 to 99, and 99.9."""
    if not taken:
        return []
    return [float(each) / 1e6 for each in np.percentile(taken, [*range(1, 100), 99.9])]
