"""``python -m stress.seeds``: replays the seeds of seeds.toml, which failed once."""

import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from ftcuda.stress.harness import Runner
from ftcuda.testing import Schedule
from stress.program import OURS

KEPT = Path(__file__).with_name("seeds.toml")
TIMEOUT = 60.0  # seconds for one round, after which it hangs


def kept() -> Iterator[tuple[str, int, int, str]]:
    """Yields the hazard, the seed, the number of threads and the schedule of each replay."""
    for each in tomllib.loads(KEPT.read_text(encoding="utf-8"))["seed"]:
        for schedule in each["schedules"]:
            yield each["hazard"], each["seed"], each["threads"], schedule


def main() -> int:
    os.environ["FTCUDA_DRIVER"] = "sim"  # before the first use of ftcuda
    environment = OURS.environment()
    done = failed = 0
    for name, seed, threads, schedule in kept():
        runner = Runner(OURS, environment, threads, Schedule.parse(schedule), TIMEOUT)
        if not runner.prepare(name):
            print(f"{name} cannot run: {runner.results[name].skipped}", file=sys.stderr)
            failed += 1
            continue
        done += 1
        if not runner.round(name, seed):
            failed += 1
            print(runner.results[name].failure, file=sys.stderr, flush=True)
            if runner.results[name].hung:
                sys.stdout.flush()
                os._exit(1)  # its threads are stuck
    print(f"seeds: {done} replayed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
