"""``python -m stress.awaits``: many awaits, some given up, some of streams that are closed, and a context that dies.

Each await must end once: with its stream or event, and then the work before it is done; as cancelled, and then somebody
cancelled it; or with the error of the context that died at the end. Memory must stay flat meanwhile.
"""

import argparse
import asyncio
import os
import sys
import threading
import time
from collections import Counter

import numpy as np

from ftcuda import CUDAError, Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, Program, driver_info, launch

SOURCE = """
extern "C" __global__ void store(int* place, int value) { *place = value; }
extern "C" __global__ void hold(const volatile int* gate) { while (*gate == 0); }
extern "C" __global__ void fault(const volatile int* gate) { while (*gate == 0); *(int*)8 = 1; }
"""
ONE = LaunchConfig(grid=1, block=1)
AT_ONCE = 50  # awaits that a loop has under way
LAST = 100  # awaits of each loop that the end of the context finds
LIMIT = 60  # seconds for one round of a loop
FLAT = 16 << 20  # bytes that a process may grow by after its first tenth


class WrongEnd(AssertionError):
    """An await ended otherwise than it had to."""


def resident() -> int:
    with open("/proc/self/statm") as figures:
        return int(figures.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Shared:
    """What all loops share."""

    def __init__(self, threads: int) -> None:
        self.device = Device(0)
        simulated = driver_info().simulated
        image = Program(SOURCE, "c++").compile("ptx" if simulated else "cubin").code
        code = (ObjectCode.from_ptx if simulated else ObjectCode.from_cubin)(image)
        self.store, self.hold, self.fault = (code.get_kernel(name) for name in ("store", "hold", "fault"))
        self.pinned = LegacyPinnedMemoryResource()
        self.gate, self.closed = self.pinned.allocate(4), self.pinned.allocate(4)  # the second one never opens
        np.frombuffer(self.gate, np.int32)[0] = np.frombuffer(self.closed, np.int32)[0] = 0
        self.meet = threading.Barrier(threads + 1, timeout=LIMIT)


class Loop:
    """A loop in a thread of its own, and its streams. `ends` counts how its awaits ended."""

    def __init__(self, shared: Shared, seed: int, count: int) -> None:
        self._shared, self._count = shared, count
        self._random = np.random.default_rng(seed)
        self._place, self._gate = shared.pinned.allocate(4), shared.pinned.allocate(4)
        self._stored, self._opened = np.frombuffer(self._place, np.int32), np.frombuffer(self._gate, np.int32)
        self._stored[:] = 0
        self.ends: Counter[str] = Counter()
        self.complaints: list[object] = []
        self.begun = 0

    def run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self.complaints.append(error)
            self._shared.meet.abort()

    async def _main(self) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, about: self.complaints.append(about))
        value = 0
        while self.begun < self._count:
            value += 1
            await asyncio.wait_for(self._round(value), LIMIT)
        await asyncio.to_thread(self._shared.meet.wait)  # all are here
        await asyncio.wait_for(self._last(), LIMIT)

    async def _round(self, value: int) -> None:
        stream = self._shared.device.create_stream()
        if value % 2:
            hash(stream.handle)  # others have it now, so that events are asked for
        self._opened[0] = opened = value % 4 < 2  # if not, all awaits begin before their work is done
        if not opened:
            launch(stream, ONE, self._shared.hold, self._gate)
        launch(stream, ONE, self._shared.store, self._place, value)
        event = stream.record()
        awaited = [stream if choice else event for choice in self._random.integers(2, size=AT_ONCE)]
        tasks = [asyncio.ensure_future(self._ends(each, value)) for each in awaited]
        self.begun += len(tasks)
        await asyncio.sleep(0)  # all have begun
        stays = self._random.integers(4, size=AT_ONCE)
        given_up = [task for task, choice in zip(tasks, stays, strict=True) if not choice]
        for task in given_up:
            task.cancel()
        closes = not self._random.integers(3)
        if closes:
            stream.close()
            event.close()
        self._opened[0] = 1
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()
                self.ends["of what was closed" if closes else "done"] += 1
            elif task in given_up:
                self.ends["given up"] += 1
            else:
                raise WrongEnd("an await that nobody gave up was cancelled")

    async def _ends(self, awaited, value: int) -> None:
        seen = await awaited
        if seen is not awaited:
            raise WrongEnd(f"{awaited!r} came to {seen!r}")
        if self._stored[0] != value:
            raise WrongEnd(f"an await came back when {self._stored[0]} was stored, and not {value}")

    async def _last(self) -> None:
        """Awaits that are under way when the context dies, with its error."""
        stream = self._shared.device.create_stream()
        launch(stream, ONE, self._shared.hold, self._shared.closed)
        tasks = [asyncio.ensure_future(stream) for _ in range(LAST)]
        self.begun += len(tasks)
        await asyncio.sleep(0)
        await asyncio.to_thread(self._shared.meet.wait)  # all wait
        await asyncio.wait(tasks)
        for task in tasks:
            error = task.exception()
            if not isinstance(error, CUDAError):
                raise WrongEnd(f"an await of a dead context came to {error!r}")
            self.ends[f"error {error.code}"] += 1


def run(count: int, threads: int, seed: int) -> int:
    shared = Shared(threads)
    loops = [Loop(shared, seed + index, -(-count // threads)) for index in range(threads)]
    running = [threading.Thread(target=loop.run) for loop in loops]
    begun = time.monotonic()
    for each in running:
        each.start()
    sizes = []
    while not shared.meet.broken and shared.meet.n_waiting < threads:
        time.sleep(0.05)
        if sum(loop.begun for loop in loops) >= count / 10:
            sizes.append(resident())
    if not shared.meet.broken:
        took = time.monotonic() - begun
        shared.meet.wait()
        fatal = shared.device.create_stream()
        launch(fatal, ONE, shared.fault, shared.gate)
        shared.meet.wait()
        np.frombuffer(shared.gate, np.int32)[0] = 1
    for each in running:
        each.join()
    complaints = [complaint for loop in loops for complaint in loop.complaints]
    for complaint in complaints[:10]:
        print(f"wrong: {complaint!r}", file=sys.stderr)
    if complaints:
        return 1
    ends = sum((loop.ends for loop in loops), Counter())
    grown = max(sizes) - sizes[0]
    print(f"{sum(ends.values()):,} awaits in {threads} loops, {took:.1f} s: "
          + ", ".join(f"{number:,} {how}" for how, number in sorted(ends.items()))
          + f"; resident {sizes[0] >> 20} MiB after a tenth, {grown / (1 << 20):+.1f} MiB later")
    if sum(ends.values()) != sum(loop.begun for loop in loops):
        print("not every await ended", file=sys.stderr)
        return 1
    if grown > FLAT:
        print("memory is not flat", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stress.awaits", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000, help="awaits of all loops together")
    parser.add_argument("--threads", type=int, default=4, help="each has a loop of its own")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    return run(chosen.count, chosen.threads, chosen.seed)


if __name__ == "__main__":
    sys.exit(main())
