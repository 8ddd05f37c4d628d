"""``python -m benchmarks``: ftcuda beside C++ and beside other libraries, in turns, on one device.

The baseline is compiled, the kernels too; then each measurement is a process of its own, and those of one case and one
number of threads take turns. Writes benchmarks.json, benchmarks.md and plots.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from rich.progress import Progress

import ftcuda
from benchmarks import report
from ftcuda import Device, Program, driver_info

HERE = Path(__file__).parent
ROOT = HERE.parent
CASES = {  # and how often all threads together call it, since the driver lets one at a time in
    "launch": 160_000,
    "bound_launch": 160_000,
    "allocate": 160_000,
    "allocate_from_the_pool": 80_000,
    "record": 480_000,
    "is_done": 480_000,
    "wait": 480_000,
    "copy_256_b": 80_000,
    "copy_64_kib": 40_000,
    "worker": 16_000,
    "graph": 160_000,  # one for each thread
    "shared_graph": 40_000,  # one for all
    "overlapping_graph": 160_000,  # one for all, with an executable for each thread
    "overlapping_graph_of_4": 160_000,
    "rebound_graph": 80_000,  # the same, whose launches have arguments of their own
    "rebound_graph_of_4": 160_000,
    "one_by_one": 16_000,  # the kernels without a graph
    "worker_graph": 48_000,
    "sync_round_trip": 160_000,
    "await_round_trip": 160_000,  # with a loop for each thread
    "await_in_one_loop": 80_000,  # for all
    "when_done_round_trip": 80_000,
    "host_launch_round_trip": 32_000,
}
ROUND_TRIPS = ("await_round_trip", "await_in_one_loop", "when_done_round_trip", "host_launch_round_trip")
BASELINE_OF = {
    "bound_launch": "launch",
    "allocate_from_the_pool": "allocate",
    **dict.fromkeys(ROUND_TRIPS, "sync_round_trip"),
}
# What ftcuda measures beside a case in the same turns, as a backend of its own.
PRIVATE = {"overlapping_graph": "private_graph", "overlapping_graph_of_4": "private_graph_of_4"}
PEERS = ("cuda_core", "cupy", "torch")
LIMIT = 300  # seconds for one measurement


def run(command: list, environment: dict | None) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=ROOT, env=environment)


class Backend:
    """What runs the cases: a program, and which cases it has, with what it calls them."""

    def __init__(
        self,
        name: str,
        command: list,
        cases: dict[str, str],
        about: str,
        environment: dict | None = None,
        one_in: dict[str, int] | None = None,
    ) -> None:
        self.name, self.cases, self.about = name, cases, about
        self._command, self._environment, self._one_in = command, environment, one_in or {}

    def measure(self, case: str, threads: int, calls: int) -> dict | None:
        """Runs one measurement; None where it fails, which is reported."""
        calls = max(1, calls // self._one_in.get(case, 1))
        command = [*map(str, self._command), self.cases[case], str(threads), str(calls)]
        try:
            done = run(command, self._environment)
        except subprocess.TimeoutExpired:
            print(f"{self.name}, {case}, {threads} threads: {calls} calls took more than {LIMIT} s", file=sys.stderr)
            return None
        if done.returncode == 0:
            return json.loads(done.stdout)
        print(f"{self.name}, {case}, {threads} threads: exit {done.returncode}\n{done.stderr[-500:]}", file=sys.stderr)
        return None


def baselines(folder: Path, image: Path, apart: list[int]) -> list[Backend]:
    """The driver's C functions from C++ threads, also with so many nanoseconds between two calls of a thread."""
    program = folder / "baseline"
    source = HERE / "baseline.cpp"
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    subprocess.run([*compiler, "-O2", "-std=c++17", source, "-o", program, "-ldl", "-lpthread"], check=True)
    cases = {case: BASELINE_OF.get(case, case) for case in CASES}
    # Requests of workers have nothing in between.
    single = {case: its for case, its in cases.items() if not its.startswith("worker")}
    command = [program, driver_info().path, image]
    made = [Backend(report.BASELINE, [*command, 0], cases, "C++, the driver's functions")]
    for each in apart:
        about = f"C++, {each} ns between two calls"
        made.append(Backend(f"{report.BASELINE} {each} ns apart", [*command, each], single, about))
    return made


def python_backend(
    module: str, interpreter: str, image: Path, name: str = "", cases: dict[str, str] | None = None
) -> Backend | None:
    """A library as an interpreter has it; None if it has not. `name`: not the library's, its version and the GIL.

    `cases`: not all that it has.

    It runs from bytecode, as an installed program does: what CPython 3.13t compiles in the process itself has constants
    whose references all threads count.
    """
    command = [interpreter, "-m", "benchmarks.measure", module, str(image)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(image.parent / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    asked = run(command, environment)
    if asked.returncode != 0:
        print(f"without {module}: {asked.stderr.strip().splitlines()[-1]}")
        return None
    about = json.loads(asked.stdout)
    library = f"{module.replace('_', '.')} {about['version']}"
    words = f"{library}, CPython {about['python']} {'with' if about['gil'] else 'without'} the GIL"
    cases = cases or {case: case for case in about["cases"]}
    name = name or library + (" GIL" if about["gil"] else "")
    return Backend(name, command, cases, words, environment, about["one_in"])


def run_all(backends: list[Backend], cases: list[str], thread_counts: list[int], options) -> list[dict]:
    """Runs every case for every number of threads, the backends in turns."""
    rows = []
    with Progress(disable=not sys.stdout.isatty()) as progress:
        task = progress.add_task("measuring", total=len(cases) * len(thread_counts) * options.repeats)
        for case in cases:
            for threads in thread_counts:
                calls = max(1, int(CASES[case] * options.scale) // threads)
                found = {each.name: [] for each in backends}
                for _ in range(options.repeats):
                    for each in backends:
                        if case in each.cases and (one := each.measure(case, threads, calls)):
                            found[each.name].append(one)
                    progress.advance(task)
                rows.append({"case": case, "threads": threads, "calls": calls, "measured": found})
                print(report.line(rows[-1]), flush=True)
    return rows


def commit() -> str:
    """The commit this tree is at, if that can be known."""
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT)
    return asked.stdout.strip() or "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--threads", default="1,4,16")
    parser.add_argument("--cases", default=",".join(CASES), help="separated by commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="times the calls of each measurement")
    parser.add_argument("--peers", action="append", default=[], metavar="PYTHON", help="that has others, or ftcuda")
    parser.add_argument("--apart", action="append", default=[], type=int, metavar="NS", help="C++ that pauses, too")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "benchmarks")
    parser.add_argument("--commit", default=None, help="where this is no checkout")
    options = parser.parse_args()
    cases = options.cases.split(",")
    if unknown := set(cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    folder = options.output
    folder.mkdir(parents=True, exist_ok=True)

    info, device = driver_info(), Device(0)
    image = folder / "kernels.image"
    code = Program((HERE / "kernels.cu").read_text(), "c++").compile().code
    image.write_bytes(code + b"\0")
    backends = baselines(folder, image, options.apart)
    backends.append(python_backend("ftcuda", sys.executable, image, report.OURS))
    backends.append(python_backend("ftcuda", sys.executable, image, report.PRIVATE, PRIVATE))
    backends[-1].about += ", a graph for each thread where all have one"
    if not info.simulated:
        others = [(module, sys.executable) for module in PEERS]
        others += [(module, interpreter) for interpreter in options.peers for module in ("ftcuda", *PEERS)]
        backends += filter(None, (python_backend(module, interpreter, image) for module, interpreter in others))
    gil = "enabled" if sys._is_gil_enabled() else "disabled"
    about = {
        "ftcuda": ftcuda.__version__,
        "commit": options.commit or commit(),
        "interpreter": f"CPython {sys.version.split()[0]}, GIL {gil}",
        "driver": info.version,
        "simulated": info.simulated,
        "device": device.name,
        "backends": {each.name: each.about for each in backends},
        "repeats": options.repeats,
    }
    print(json.dumps(about, indent=1))
    rows = run_all(backends, cases, [int(count) for count in options.threads.split(",")], options)
    (folder / "benchmarks.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1))
    (folder / "benchmarks.md").write_text(report.table(about, rows))
    report.plots(about, rows, folder)
    print(f"written: {folder}")
    failed = [row for row in rows if not row["measured"][report.BASELINE] or not row["measured"][report.OURS]]
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
