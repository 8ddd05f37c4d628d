"""``python -m benchmarks.waking``: how long after its kernel an ``await`` comes back, and what looking for that costs.

A kernel of a known length stores a word at its end. One thread does nothing but read that word; from its time on until
the coroutine goes on is the latency. Each pace of the library's thread (``FTCUDA_REACTOR``) is a process of its own.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, driver_info, launch

SOURCE = """
extern "C" __global__ void late(volatile int* place, int value, long long nanoseconds) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < nanoseconds);
    *place = value;
}
"""
PACES = {"": "adapted", "spin": "spin", "sleep": "sleep"}
LENGTHS = (20_000, 100_000, 1_000_000, 10_000_000)  # nanoseconds
LONG = 300_000_000  # of the wait during which processor time is counted
IDLE = 1.0  # seconds
ROOT = Path(__file__).parent.parent


class Watcher:
    """Notes when each value is first in memory."""

    def __init__(self, word: np.ndarray) -> None:
        self._word, self._ends, self._seen = word, False, {}
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        last = 0
        while not self._ends:
            if (now := int(self._word[0])) != last:
                self._seen[now] = time.perf_counter_ns()
                last = now

    def when(self, value: int) -> int:
        while value not in self._seen:
            pass
        return self._seen[value]

    def __enter__(self) -> "Watcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        self._thread.join()


class Measured:
    """Of one pace, in this process."""

    def __init__(self) -> None:
        self._stream = Device(0).create_stream()
        self._kernel = Program(SOURCE, "c++").compile().get_kernel("late")
        self._place = LegacyPinnedMemoryResource().allocate(4)
        self._word = np.frombuffer(self._place, np.int32)
        self._word[:] = 0
        self._value = 0

    def _launch(self, length: int) -> int:
        self._value += 1
        launch(self._stream, LaunchConfig(grid=1, block=1), self._kernel, self._place, self._value, length)
        return self._value

    async def latencies(self, length: int, count: int) -> list[int]:
        """In nanoseconds, sorted."""
        found = []
        with Watcher(self._word) as watcher:
            for _ in range(count):
                value = self._launch(length)
                await self._stream
                back = time.perf_counter_ns()
                found.append(back - watcher.when(value))
        return sorted(found)

    async def processor(self) -> float:
        """Of one processor, the part that a wait takes."""
        self._launch(LONG)
        begun, used = time.perf_counter(), time.process_time()
        await self._stream
        return (time.process_time() - used) / (time.perf_counter() - begun)

    def idle(self) -> float:
        """Of one processor, the part that is used while nothing is pending."""
        used = time.process_time()
        time.sleep(IDLE)
        return (time.process_time() - used) / IDLE

    def all(self, count: int) -> dict:
        lengths = {
            length: asyncio.run(self.latencies(length, max(10, min(count, 10**9 // length)))) for length in LENGTHS
        }
        return {"latencies": lengths, "processor": asyncio.run(self.processor()), "idle": self.idle()}


def part_of(found: list[int], part: float) -> float:
    """In microseconds."""
    return found[int(part * (len(found) - 1))] / 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waking", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="waits of each length, fewer of long ones")
    parser.add_argument("--one", action="store_true", help="only the pace of this process, as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(Measured().all(options.count)))
        return 0
    if sys._is_gil_enabled():
        print("benchmarks.waking: a thread that reads all the time needs CPython without the GIL", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 140, markup=False, emoji=False)
    table = Table("pace", *[f"{length // 1000} us" for length in LENGTHS], "processor, while one waits", "idle")
    for pace, name in PACES.items():
        asked = subprocess.run(
            [sys.executable, "-m", "benchmarks.waking", "--one", "--count", str(options.count)],
            env={**os.environ, "FTCUDA_REACTOR": pace}, cwd=ROOT, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        if asked.returncode != 0:
            print(f"{name}: exit {asked.returncode}\n{asked.stderr[-2000:]}", file=sys.stderr)
            return 1
        measured = json.loads(asked.stdout)
        latencies = [
            f"{part_of(found, 0.5):.1f} ({part_of(found, 0.99):.1f})" for found in measured["latencies"].values()
        ]
        table.add_row(name, *latencies, f"{measured['processor']:.1%}", f"{measured['idle']:.2%}")
    console.print(
        f"{Device(0).name}, driver {driver_info().version}: microseconds from the end of a kernel to its await, "
        "median (99th percentile), by the length of the kernel",
        highlight=False,
    )
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
