"""``python -m stress.replay``: runs the same seeds in two processes and compares the traces of their interleavings.

In two, since a process remembers: idle events of earlier rounds, for instance, save later ones a driver call.
"""

import argparse
import os
import subprocess
import sys


def traces(options: argparse.Namespace) -> int:
    """Runs every seed and prints its trace, one a line."""
    os.environ["FTCUDA_DRIVER"] = "sim"  # before the first use of ftcuda

    from ftcuda.testing import Schedule
    from ftcuda.testing.schedule import last_trace
    from stress.environment import Environment
    from stress.harness import Runner

    runner = Runner(Environment(), options.threads, Schedule.parse(options.sched), options.timeout)
    for name in options.hazard or ("launches", "close", "exclusive", "shared_buffer"):
        if not runner.prepare(name):
            raise SystemExit(f"{name} cannot run: {runner.results[name].skipped}")
        for seed in range(1, options.seeds + 1):
            if not runner.round(name, seed):
                print(runner.results[name].failure, file=sys.stderr, flush=True)
                os._exit(1)  # its threads may be stuck
            print(name, seed, *last_trace())
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stress.replay", description=__doc__)
    parser.add_argument("--sched", default="pct:10")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--hazard", action="append")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one round")
    parser.add_argument("--traces", action="store_true", help="run once and print the traces")
    options = parser.parse_args()
    if options.traces:
        return traces(options)
    command = [sys.executable, "-m", "stress.replay", "--traces", *sys.argv[1:]]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    first, second = (
        subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        for _ in range(2)
    )
    different = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    for one, other in different[:10]:
        print(f"two runs, two traces: {one} / {other}", file=sys.stderr)
    print(f"replay {options.sched}: {len(first)} seeds, {len(different)} with different traces")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
