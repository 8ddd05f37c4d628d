"""``python -m benchmarks.serving.measure BACKEND FOLDER [CASE]``: a measurement, in a process of its own.

FOLDER has model.bin, model.image and options.json. Prints requests a second (rows, for `submit_many`), and percentiles
of their milliseconds where the case takes these. Without CASE: what the backend is, and which cases it has.
"""

import faulthandler
import importlib
import json
import sys
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.serving import loops
from benchmarks.serving.model import load


def loop_of(backend, model, case: str, threads: int, options: dict, rate: float, index: int):
    """A thread's loop, which lacks its end only."""
    rows, answers = model.of_thread(index, threads)
    ask = backend.of(case, index)
    if case == "submit_many":
        count = options["rows_of_a_request"]
        whole = len(rows) // count
        rows = rows[: whole * count].reshape(whole, count, -1)
        answers = answers[: whole * count].reshape(whole, count, -1)
        return partial(loops.windowed, ask, list(rows), answers, size=options["requests_in_flight"])
    if case == "submit":
        return partial(loops.windowed, ask, list(rows), answers, size=options["in_flight_of_a_thread"])
    if case == "load":
        gaps = np.random.default_rng(index).exponential(1e9 * threads / rate, 4096).astype(int).tolist()
        return partial(loops.paced, ask, list(rows), answers, gaps=gaps)
    return partial(loops.blocking, ask, list(rows), answers)


def measure(backend, model, case: str, threads: int, options: dict, rate: float = 0) -> dict:
    """`rate`: how many requests a second all threads offer together, for the case `load`."""
    before = backend.figures()
    prepare = partial(loop_of, backend, model, case, threads, options, rate)
    requests, taken = loops.in_all(threads, prepare, options["seconds"], options["warm_up"])
    each = options["rows_of_a_request"] if case == "submit_many" else 1
    done = {name: value - before[name] for name, value in backend.figures().items()}
    return {"rate": requests * each, "milliseconds": loops.milliseconds(taken), **done}


def main() -> int:
    name, folder, *rest = sys.argv[1:]
    folder = Path(folder)
    kind = importlib.import_module(f"benchmarks.serving.of_{name}").Backend
    if not rest:
        gil = getattr(sys, "_is_gil_enabled", lambda: True)()
        about = {"version": kind.version, "python": sys.version.split()[0], "gil": gil, "cases": kind.cases}
        print(json.dumps(about))
        return 0
    options = json.loads((folder / "options.json").read_text())
    case = rest[0]
    faulthandler.dump_traceback_later(options["limit"] * max(len(rest) - 1, 1), exit=True)
    model = load(folder / "model.bin")
    backend = kind(model, folder, options)
    if case == "load":
        answer = [
            {"offered": rate, **measure(backend, model, case, options["threads_of"][case], options, rate)}
            for rate in map(float, rest[1:])
        ]
    else:
        answer = measure(backend, model, case, options["threads_of"][case], options)
    backend.close()
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
