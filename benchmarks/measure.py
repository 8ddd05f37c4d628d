"""``python -m benchmarks.measure BACKEND IMAGE CASE THREADS CALLS``: one measurement, in a process of its own.

Prints calls per second of all threads together, from the first one's begin to the last one's end, and percentiles of
the milliseconds of a call where the case takes its time. Without CASE: what the backend is, and which cases it has.
"""

import importlib
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WARM_UP = 5000  # calls, as in baseline.cpp


def measure(backend, case: str, threads: int, calls: int) -> dict:
    """Runs a case in all threads at once. Loops that have a `check` look at what came of it, after the last one."""
    barrier = threading.Barrier(threads)
    loops = [None] * threads

    def work(index):
        loop = loops[index] = getattr(backend, case)(index)
        loop(min(calls, WARM_UP))
        barrier.wait(60)
        begin = time.perf_counter()
        milliseconds = loop(calls)
        return begin, time.perf_counter(), milliseconds or []

    with ThreadPoolExecutor(threads) as pool:
        spans = list(pool.map(work, range(threads)))
    for loop in loops:
        if hasattr(loop, "check"):
            loop.check(loops)
    seconds = max(end for _, end, _ in spans) - min(begin for begin, _, _ in spans)
    every = sorted(value for _, _, milliseconds in spans for value in milliseconds)
    percentiles = [every[len(every) * percent // 100] for percent in range(1, 100)] if every else []
    return {"rate": threads * calls / seconds, "milliseconds": percentiles}


def main() -> int:
    name, image, *rest = sys.argv[1:]
    kind = importlib.import_module(f"benchmarks.backends.of_{name}").Backend
    if rest:
        case, threads, calls = rest
        answer = measure(kind(Path(image).read_bytes()), case, int(threads), int(calls))
    else:
        gil = getattr(sys, "_is_gil_enabled", lambda: True)()
        cases = [case for case in vars(kind) if callable(vars(kind)[case]) and not case.startswith("_")]
        answer = {
            "version": kind.version,
            "python": sys.version.split()[0],
            "gil": gil,
            "cases": cases,
            "one_in": getattr(kind, "one_in", {}),
        }
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
