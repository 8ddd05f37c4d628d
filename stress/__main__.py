"""``python -m stress``: runs the hazards for a time and reports. Every failure prints the command that repeats it."""

import argparse
import gc
import json
import os
import sys
import time
from pathlib import Path


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stress", description=__doc__)
    parser.add_argument("--driver", choices=("sim", "cuda"), default=os.environ.get("FTCUDA_DRIVER", "sim"))
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30.0, help="for all hazards together")
    parser.add_argument("--hazard", action="append", help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--rounds", type=int, help="rounds of each hazard, instead of a time")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    return parser.parse_args()


def run(name: str, hazard, options: argparse.Namespace, seconds: float, advance) -> tuple[int, str | None]:
    """Returns the number of rounds and, if one failed, how to repeat it."""
    import numpy as np

    from ftcuda.testing import together

    end = time.monotonic() + seconds
    rounds = 0
    while rounds < options.rounds if options.rounds else time.monotonic() < end:
        seed = options.seed + rounds
        try:
            state = hazard.round(np.random.default_rng(seed))
            together(
                options.threads,
                lambda index, state=state, seed=seed: hazard.act(state, index, np.random.default_rng([seed, index])),
            )
            hazard.check(state)
        except Exception as failure:
            options_again = (
                f"--driver {options.driver} --threads {options.threads} --hazard {name} --seed {seed} --rounds 100"
            )
            again = f"python -m stress {options_again}"
            return rounds, f"{type(failure).__name__}: {failure}\n  repeat with: {again}"
        rounds += 1
        advance(rounds)
    return rounds, None


def main() -> int:
    options = parse()
    os.environ["FTCUDA_DRIVER"] = options.driver  # before the first use of ftcuda

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

    import ftcuda
    from stress.hazards import HAZARDS

    names = options.hazard or list(HAZARDS)
    unknown = [name for name in names if name not in HAZARDS]
    if unknown:
        print(f"no hazard {unknown[0]!r}; there are {', '.join(HAZARDS)}", file=sys.stderr)
        return 2
    console = Console()
    gil = "enabled" if sys._is_gil_enabled() else "disabled"
    device = ftcuda.Device(0)
    interpreter = f"CPython {sys.version.split()[0]}, GIL {gil}"
    console.print(f"{interpreter}; driver {ftcuda.driver_info().version}; {device.name}; {options.threads} threads")

    results = {}
    with Progress(
        TextColumn("{task.description:>12}"),
        BarColumn(),
        TextColumn("{task.fields[rounds]} rounds"),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        for name in names:
            task = progress.add_task(name, total=None, rounds=0)
            rounds, failure = run(
                name,
                HAZARDS[name](),
                options,
                options.seconds / len(names),
                lambda count, task=task: progress.update(task, rounds=count),
            )
            progress.update(task, total=1, completed=1)
            results[name] = {"rounds": rounds, "failure": failure}
    gc.collect()
    device.sync()
    violations = []
    if ftcuda.driver_info().simulated:
        from ftcuda.testing import simulation

        violations = simulation.violations()

    table = Table("hazard", "rounds", "result")
    for name, result in results.items():
        table.add_row(name, str(result["rounds"]), result["failure"] or "clean")
    console.print(table)
    console.print(f"violations: {violations or 'none'}")
    if options.json:
        options.json.write_text(json.dumps({"results": results, "violations": violations}, indent=1))
    failed = (
        violations
        or any(result["failure"] for result in results.values())
        or any(result["rounds"] == 0 for result in results.values())
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
