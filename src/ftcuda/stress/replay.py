"""``python -m ftcuda.stress.replay``: runs seeds in two processes and compares the traces of their interleavings.

In two, since a process remembers: idle events of earlier rounds, for instance, save later ones a driver call.
"""

import argparse
import os
import subprocess
import sys

from ftcuda.stress.harness import Runner
from ftcuda.stress.program import NoHazardError, Program
from ftcuda.testing import Schedule
from ftcuda.testing.schedule import last_trace


def traces(program: Program, options: argparse.Namespace) -> int:
    """Runs every seed and prints its trace, one a line."""
    os.environ["FTCUDA_DRIVER"] = "sim"  # before the first use of ftcuda
    runner = Runner(program, program.environment(), options.threads, Schedule.parse(options.sched), options.timeout)
    for name in options.hazard:
        if not runner.prepare(name):
            raise SystemExit(f"{name} cannot run: {runner.results[name].skipped}")
        for seed in range(1, options.seeds + 1):
            if not runner.round(name, seed):
                print(runner.results[name].failure, file=sys.stderr, flush=True)
                os._exit(1)  # its threads may be stuck
            print(name, seed, *last_trace())
    return 0


def main(program: Program, hazards: list[str]) -> int:
    """Runs what the command line says, these hazards if it names none, and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program.module}.replay",
        description="Runs seeds in two processes and compares traces.",
    )
    parser.add_argument("hazards", nargs="*", metavar="HAZARD", help="as for the harness itself")
    parser.add_argument("--hazard", action="append", metavar="HAZARD", help="the same; may be repeated")
    parser.add_argument("--sched", default="pct:10")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one round")
    parser.add_argument("--traces", action="store_true", help="run once and print the traces")
    options = parser.parse_intermixed_args()
    named = [*options.hazards, *(options.hazard or ())] or hazards
    try:
        options.hazard = [hazard for name in named for hazard in program.hazards_of(name)]
        for name in options.hazard:
            program.find(name)
    except NoHazardError as problem:
        parser.error(str(problem))
    if not options.hazard:
        parser.error("there is nothing to replay; give a file, a folder or a module with a hazard")
    if options.traces:
        return traces(program, options)
    command = [sys.executable, "-m", f"{program.module}.replay", "--traces", *sys.argv[1:]]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    runs = []
    for _ in range(2):
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:  # it said why
            return run.returncode
        runs.append(run.stdout.splitlines())
    first, second = runs
    different = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    for one, other in different[:10]:
        print(f"two runs, two traces: {one} / {other}", file=sys.stderr)
    print(f"replay {options.sched}: {len(first)} seeds, {len(different)} with different traces")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(Program("ftcuda.stress"), []))
