"""A mixed load for hours, and curves that must stay flat."""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ftcuda.testing import settle
from stress.environment import Environment
from stress.harness import GRACE, Runner, last_resort

MEBI = 1 << 20

# What each curve may grow by over the whole run, from its fitted slope, beyond the slope's own uncertainty.
LIMITS = {"device memory": 1 * MEBI, "pinned memory": 1 * MEBI, "handles": 16, "resident memory": 16 * MEBI}
WARM_UP = 0.2  # part of the run in which caches and arenas fill


@dataclass
class Curve:
    """One figure over time, and the line through it."""

    name: str
    limit: float
    seconds: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

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


class Meter:
    """Reads the figures. On a GPU, what the driver has mapped and opened stands for pinned memory and handles."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def read(self) -> dict[str, float]:
        """Returns every figure at this moment, with nothing running."""
        settle()  # what is kept for the next use is no leak
        figures = self._simulated() if self._env.is_simulated else self._real()
        resident = int(Path("/proc/self/statm").read_text().split()[1])
        return {**figures, "resident memory": resident * os.sysconf("SC_PAGE_SIZE")}

    def _simulated(self) -> dict[str, float]:
        from ftcuda.testing import simulation

        live, size = simulation.live(), simulation.live_bytes()
        handles = sum(live[kind] for kind in ("stream", "event", "module", "pool"))
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
    """Tries every case once, then rounds in random order, reading the meter about 600 times. Stops at a failure."""
    choose, meter = random.Random(seed), Meter(env)
    curves = {name: Curve(name, limit) for name, limit in LIMITS.items()}
    for name in names:  # whatever the first use of anything makes is there before the first sample
        for _ in range(runner.cases(name)):
            seed += 1
            if not runner.round(name, seed):
                return list(curves.values())
    begin = time.monotonic()
    interval = max(seconds / 600, 0.5)
    next_sample = 0.0
    while (now := time.monotonic() - begin) < seconds:
        if now >= next_sample:
            with last_resort(runner.timeout + GRACE):
                figures = meter.read()
            for name, value in figures.items():
                curves[name].seconds.append(now)
                curves[name].values.append(value)
            next_sample = now + interval
            advance(now)
        seed += 1
        if not runner.round(choose.choice(names), seed):
            break
    return list(curves.values())
