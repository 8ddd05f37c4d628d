"""A mixed load for hours, and curves that must stay flat."""

import ctypes
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ftcuda.stress.harness import GRACE, Runner, last_resort
from ftcuda.testing import settle
from ftcuda.testing.hazard import Environment

MEBI = 1 << 20

# What each curve may grow by over the whole run, from its fitted slope, beyond the slope's own uncertainty.
LIMITS = {
    "device memory": 1 * MEBI,
    "pinned memory": 1 * MEBI,
    "handles": 16,
    "resident memory": 16 * MEBI,
    "malloc memory": 4 * MEBI,  # in use, of libc's allocator: ftcuda's own, the driver's and the interpreter's C parts
    "Python blocks": 20_000,
}
# A real driver counts device memory in pages of 2 MiB. One more, which it takes for itself amid a run, fits a line that
# grows by half as much again.
PAGES = 3 * MEBI
WARM_UP = 0.2  # part of the run in which caches and arenas fill


@dataclass
class Curve:
    """One figure over time, and the line through it."""

    name: str
    limit: float
    seconds: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    hazards: list[str] = field(default_factory=list)  # which of them alone ran before each sample

    def is_long_enough(self) -> bool:
        """Whether a line through the samples means something."""
        return len(self.values) - int(len(self.values) * WARM_UP) >= 10

    def fit(self) -> tuple[float, float]:
        """Returns the growth over the run by least squares, and its 95 % interval's half width."""
        begin = int(len(self.values) * WARM_UP)
        x, y = np.array(self.seconds[begin:]), np.array(self.values[begin:])
        (slope, level), length = np.polyfit(x, y, 1), np.ptp(x)
        deviation = y - (slope * x + level)
        error = np.sqrt((deviation**2).sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum())
        return float(slope * length), float(1.96 * error * length)

    def is_flat(self) -> bool:
        """Whether the run could have grown the figure by less than the limit."""
        growth, error = self.fit()
        return growth - error <= self.limit

    def growers(self) -> list[tuple[str, float]]:
        """Returns how much the figure grew while each hazard ran, after the warm-up, the most first."""
        grown: dict[str, float] = {}
        for at in range(max(int(len(self.values) * WARM_UP), 1), len(self.values)):
            name = self.hazards[at]
            grown[name] = grown.get(name, 0.0) + self.values[at] - self.values[at - 1]
        return sorted(grown.items(), key=lambda item: -item[1])


class MallocInfo(ctypes.Structure):
    """What `mallinfo2` of glibc returns."""

    NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = tuple((name, ctypes.c_size_t) for name in NAMES)


LIBC: ctypes.CDLL = ctypes.CDLL(None if sys.platform != "win32" else "msvcrt")
HAS_MALLINFO: bool = hasattr(LIBC, "mallinfo2")  # glibc 2.33
if HAS_MALLINFO:
    LIBC.mallinfo2.restype = MallocInfo


def malloc_in_use() -> int:
    """Returns the bytes that libc's allocator has given out, once it has returned to the system what nobody uses."""
    LIBC.malloc_trim(0)
    info = LIBC.mallinfo2()
    return info.uordblks + info.hblkhd


class Meter:
    """Reads the figures. On a GPU, what the driver has mapped and opened stands for pinned memory and handles."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def read(self) -> dict[str, float]:
        """Returns every figure at this moment, with nothing running."""
        settle()  # what is kept for the next use is no leak
        figures = self._simulated() if self._env.is_simulated else self._real()
        if HAS_MALLINFO:
            figures["malloc memory"] = malloc_in_use()
        resident = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            **figures,
            "Python blocks": sys.getallocatedblocks(),
            "resident memory": resident * os.sysconf("SC_PAGE_SIZE"),
        }

    def _simulated(self) -> dict[str, float]:
        from ftcuda.testing import simulation

        live, size = simulation.live(), simulation.live_bytes()
        handles = sum(live[kind] for kind in ("stream", "event", "module", "pool", "graph", "executable"))
        return {
            "device memory": size["device_allocation"],
            "pinned memory": size["pinned_allocation"],
            "handles": handles,
        }

    def _real(self) -> dict[str, float]:
        free, total = self._env.device.memory_info
        mapped = count = 0
        for line in Path("/proc/self/maps").read_text().splitlines():
            if "/dev/nvidia" in line or "/dev/zero" in line:
                begin, end = (int(part, 16) for part in line.split()[0].split("-"))
                mapped += end - begin
                count += 1
        return {
            "device memory": total - free,
            "pinned memory": mapped,
            "handles": count + len(os.listdir("/proc/self/fd")),
        }


def run(
    runner: Runner, env: Environment, names: list[str], seed: int, seconds: float, advance: Callable[[float], None]
) -> list[Curve]:
    """Tries every case once, then rounds in random order, reading the meter about 600 times. Stops at a failure.

    Between two samples one hazard runs alone, so that a curve knows who grew. An interrupt ends the run early.
    """
    choose, meter = random.Random(seed), Meter(env)
    curves: dict[str, Curve] = {}
    for name in names:  # whatever the first use of anything makes is there before the first sample
        for _ in range(runner.cases(name)):
            seed += 1
            if not runner.round(name, seed):
                return []
    begin = time.monotonic()
    interval = max(seconds / 600, 0.5)
    next_sample, name = 0.0, ""
    try:
        while (now := time.monotonic() - begin) < seconds:
            if now >= next_sample:
                with last_resort(runner.timeout + GRACE):
                    figures = meter.read()
                for figure, value in figures.items():
                    in_pages = figure == "device memory" and not env.is_simulated
                    curve = curves.setdefault(figure, Curve(figure, PAGES if in_pages else LIMITS[figure]))
                    curve.seconds.append(now)
                    curve.values.append(value)
                    curve.hazards.append(name)
                next_sample, name = now + interval, choose.choice(names)
                advance(now)
            seed += 1
            if not runner.round(name, seed):
                break
    except KeyboardInterrupt:
        print("interrupted; the curves so far:", file=sys.stderr)
    return list(curves.values())
