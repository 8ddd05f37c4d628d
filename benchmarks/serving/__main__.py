"""``python -m benchmarks.serving``: a perceptron for many threads, by ftcuda's batcher and by others, in turns.

Each measurement is a process of its own, with a limit of time. The same kernels serve C++, ftcuda and the batcher in
Python; every answer is compared with numpy's. Then requests come at parts of the rate that was reached, and their
latency is measured. Writes serving.json, serving.md and, with --plot, latency.png.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import ftcuda
from benchmarks.serving import model, report
from ftcuda import Device, Program, driver_info

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATIENCE = 60  # seconds beyond what a process measures, in which it must have begun and ended
BACKENDS = ("ftcuda", "queue", "torch")
ABOUT = {"queue": "queue.Queue in Python above ftcuda", "torch": "torch, queue.Queue in Python"}


class Failed(Exception):
    """A measurement that has no result."""


def numbers(text: str) -> list[float]:
    return [float(each) for each in text.split(",")]


def run(command: list, limit: float, environment: dict | None = None) -> object:
    """What a process says, as JSON."""
    try:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=limit, cwd=ROOT, env=environment
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"more than {limit:.0f} s") from None
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}\n{done.stderr[-1500:]}")
    return json.loads(done.stdout)


class Native:
    """The driver's functions from C++ threads."""

    def __init__(self, folder: Path, options) -> None:
        self._program, self._folder, self._options = folder / "batch_1", folder, options
        compiler = shlex.split(os.environ.get("CXX", "c++"))
        source = HERE / "batch_1.cpp"
        subprocess.run([*compiler, "-O2", "-std=c++17", source, "-o", self._program, "-ldl", "-lpthread"], check=True)
        self.name = "C++"
        batches = sorted({1, options.rows, options.batch_sizes[-1]})
        self.cases = {f"{kind}, batches of {rows}": (kind, rows) for rows in batches for kind in ("plain", "graph")}
        self.cases = {name: case for name, case in self.cases.items() if case[1] == 1 or case[0] == "graph"}
        self.threads = dict.fromkeys(self.cases, options.threads)

    def measure(self, case: str) -> dict:
        files = self._folder / "model.image", self._folder / "model.bin"
        rest = (*self.cases[case], self.threads[case], self._options.seconds)
        return run([self._program, driver_info().path, *files, *rest], self._options.limit)


class Python:
    """A backend as an interpreter has it. It runs from bytecode, as an installed program does."""

    def __init__(self, module: str, interpreter: str, folder: Path, options) -> None:
        self._command = [interpreter, "-m", "benchmarks.serving.measure", module, folder]
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(ROOT / "build" / "bytecode")}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._options = options
        about = run(self._command, options.limit, self._environment)
        gil = "with" if about["gil"] else "without"
        self.name = f"{ABOUT.get(module, module)} {about['version']}, CPython {about['python']} {gil} the GIL"
        self.cases = [case for case in about["cases"] if case in options.cases]
        self.threads = {case: options.threads_of[case] for case in self.cases}

    def measure(self, case: str) -> dict:
        return run([*self._command, case], self._options.limit, self._environment)

    def load(self, rates: list[float]) -> list[dict]:
        return run([*self._command, "load", *rates], len(rates) * self._options.limit, self._environment)


def backends(folder: Path, options) -> list:
    asked = [("ftcuda", sys.executable), ("queue", sys.executable)]
    if not driver_info().simulated:
        asked.append(("torch", sys.executable))
        asked += [(module, interpreter) for interpreter in options.peers for module in BACKENDS]
    made = []
    for module, interpreter in asked:
        try:
            made.append(Python(module, interpreter, folder, options))
        except Failed as error:
            print(f"without {module} of {interpreter}: {str(error).strip().splitlines()[-1]}")
            if not made:
                raise
    return [*made[:1], Native(folder, options), *made[1:]]


def measured(ours: list, repeats: int) -> tuple[list[dict], bool]:
    """Each case of each backend, in turns; also whether all were measured."""
    found = {(each.name, case): [] for each in ours for case in each.cases}
    whole = True
    for _ in range(repeats):
        for each in ours:
            for case in each.cases:
                try:
                    found[each.name, case].append(each.measure(case))
                except Failed as error:
                    whole = False
                    print(f"{each.name}, {case}: {error}", file=sys.stderr)
                    continue
                print(f"{each.name}: {report.line(case, each.threads[case], found[each.name, case])}", flush=True)
    rows = [
        {"backend": each.name, "case": case, "threads": each.threads[case], "measured": found[each.name, case]}
        for each in ours
        for case in each.cases
    ]
    return rows, whole


def commit() -> str:
    """The commit this tree is at, if that can be known."""
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT)
    return asked.stdout.strip() or "unknown"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=16, help="of all cases but `call`")
    parser.add_argument("--callers", type=int, default=64, help="threads of `call`, each of which waits for its answer")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--cases", default="submit_many,submit,call,one_by_one", help="of those in Python")
    parser.add_argument("--model", default="perceptron", help=f"{', '.join(model.MODELS)}, or widths: 64,512,10")
    parser.add_argument("--rows", type=int, default=32, help="of a request of submit_many")
    parser.add_argument("--requests", type=int, default=1, help="of submit_many on their way, of each thread")
    parser.add_argument("--in-flight", type=int, default=32, help="rows of submit on their way, of each thread")
    parser.add_argument("--batches", type=int, default=2, help="that are on the device at once: Batcher's in_flight")
    parser.add_argument("--batch-sizes", default="1,4,16,32,64,128,256")
    parser.add_argument("--max-delay", type=float, default=200e-6)
    parser.add_argument("--max-queued", type=int, default=16384)
    parser.add_argument("--known", type=int, default=8192, help="rows with known answers, of all threads together")
    parser.add_argument("--load", default="0.1,0.25,0.5,0.75,0.9", help="parts of submit's rate; empty: no load")
    parser.add_argument("--senders", type=int, default=0, help="threads of the load; 0: as many as processors, less 2")
    parser.add_argument("--plot", action="store_true", help="latency against load, in latency.png")
    parser.add_argument("--peers", action="append", default=[], metavar="PYTHON", help="that has torch, or ftcuda")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "serving")
    parser.add_argument("--commit", default=None, help="where this is no checkout")
    options = parser.parse_args()
    options.widths = model.MODELS.get(options.model) or tuple(map(int, options.model.split(",")))
    options.batch_sizes = list(map(int, options.batch_sizes.split(",")))
    options.cases, options.load = options.cases.split(","), numbers(options.load) if options.load else []
    options.warm_up = min(0.3, options.seconds)
    options.limit = PATIENCE + options.seconds
    options.senders = options.senders or max(1, min(options.threads, (os.cpu_count() or 1) - 2))
    if options.known < max(options.threads * options.rows, options.senders, options.callers):
        parser.error("--known must be enough for a request of each thread")
    if options.rows > options.batch_sizes[-1]:
        parser.error("--rows: a request of the batcher in Python is of one batch")
    return options


def main() -> int:
    options = parsed()
    options.threads_of = {case: options.threads for case in options.cases}
    options.threads_of |= {"call": options.callers, "load": options.senders}
    folder = options.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    code = Program((HERE / "model.cu").read_text(), "c++").compile().code
    (folder / "model.image").write_bytes(code + b"\0")
    model.save(model.made(options.widths, options.known), folder / "model.bin")
    said = {
        "batch_sizes": options.batch_sizes,
        "max_delay": options.max_delay,
        "max_queued": options.max_queued,
        "in_flight": options.batches,
        "rows_of_a_request": options.rows,
        "requests_in_flight": options.requests,
        "in_flight_of_a_thread": options.in_flight,
        "threads_of": options.threads_of,
        "seconds": options.seconds,
        "warm_up": options.warm_up,
        "limit": options.limit - 5,
    }
    (folder / "options.json").write_text(json.dumps(said))
    info = driver_info()
    about = {
        "ftcuda": ftcuda.__version__,
        "commit": options.commit or commit(),
        "driver": info.version,
        "simulated": info.simulated,
        "device": Device(0).name,
        "processors": os.cpu_count(),
        "model": options.widths,
        "repeats": options.repeats,
        **said,
    }
    print(json.dumps(about))
    ours = backends(folder, options)
    rows, whole = measured(ours, options.repeats)
    mine = [row["measured"] for row in rows if row["backend"] == ours[0].name and row["case"] == "submit"]
    load = []
    if options.load and mine and mine[0]:
        try:
            load = ours[0].load([part * report.median(mine[0]) for part in options.load])
        except Failed as error:
            whole = False
            print(f"the load: {error}", file=sys.stderr)
    result = {"about": about, "rows": rows, "parts": options.load, "load": load}
    (folder / "serving.json").write_text(json.dumps(result, indent=1))
    text = report.table(result)
    (folder / "serving.md").write_text(text)
    print(text)
    if options.plot and load:
        report.plot(result, folder / "latency.png")
    print(f"written: {folder}")
    return not whole


if __name__ == "__main__":
    sys.exit(main())
