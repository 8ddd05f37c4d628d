"""``python -m examples.inference``: serves digits from many threads and checks every answer."""

import argparse
import itertools
import json
import sys
import sysconfig
import threading
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import ftcuda
from examples.inference.model import LOGIT_TOLERANCE, check_margins, forward, load_digits, load_weights, split
from examples.inference.worker import SharedModel, Worker, serve
from ftcuda.testing import together

TIMEOUT = 600.0


def gil_is_wrong() -> bool:
    """Whether the GIL is on although the interpreter was built to run without it."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and sys._is_gil_enabled()


def measure(
    model: SharedModel, threads: int, requests: int, images, logits, progress: Progress, *, with_graph: bool
) -> dict:
    """Serves `requests` with `threads` threads. Raises if any answer differs from the reference."""
    workers = [Worker(model, with_graph=with_graph) for _ in range(threads)]
    for worker in workers:
        worker.infer(images[0])
    task = progress.add_task(f"{threads} thread{'s' if threads > 1 else ''}", total=requests)
    counter = itertools.count()
    lock = threading.Lock()

    def advance(count: int) -> None:
        with lock:
            progress.advance(task, count)

    begin = time.perf_counter()
    served = together(
        threads, lambda index: serve(workers[index], images, logits, counter, requests, advance), timeout=TIMEOUT
    )
    seconds = time.perf_counter() - begin

    expected = logits.argmax(axis=1)
    answered = {request: digit for one in served for request, digit in zip(one.requests, one.digits, strict=True)}
    if sorted(answered) != list(range(requests)):
        raise SystemExit(f"{requests} requests were made, {len(answered)} were answered")
    wrong = [request for request, digit in answered.items() if digit != expected[request % len(images)]]
    if wrong:
        raise SystemExit(
            f"{len(wrong)} of {requests} answers differ from the reference, first for image {wrong[0] % len(images)}"
        )
    worst = max(one.worst_logit for one in served)
    if not worst < LOGIT_TOLERANCE:
        raise SystemExit(f"a logit differs from the reference by {worst:.3g}")
    milliseconds = 1e3 * np.concatenate([one.seconds for one in served])
    p50, p95, p99 = np.percentile(milliseconds, (50, 95, 99))
    return {
        "threads": threads, "requests": requests, "seconds": seconds, "requests_per_second": requests / seconds,
        "p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "slowest_ms": milliseconds.max(), "worst_logit_difference": worst,
    }  # fmt: skip


def plot(results: list[dict], title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    threads = [result["threads"] for result in results]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(threads, [result["requests_per_second"] for result in results], marker="o")
    left.set(xlabel="threads", ylabel="requests per second", xticks=threads, ylim=(0, None))
    for name in ("p50_ms", "p95_ms", "p99_ms"):
        right.plot(threads, [result[name] for result in results], marker="o", label=name.removesuffix("_ms"))
    right.set(xlabel="threads", ylabel="latency in ms", xticks=threads, ylim=(0, None))
    right.legend()
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.inference", description=__doc__)
    parser.add_argument("--threads", default="1,2,4,8,16", help="thread counts, separated by commas")
    parser.add_argument("--requests", type=int, help="requests for each thread count")
    parser.add_argument("--graph", action="store_true", help="launch each inference as one graph, of each thread's own")
    parser.add_argument("--plot", type=Path, default=Path("build/inference.png"))
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    console = Console(markup=False, emoji=False)

    info = ftcuda.driver_info()
    device = ftcuda.Device(0)
    interpreter = f"CPython {sys.version.split()[0]}, GIL {'enabled' if sys._is_gil_enabled() else 'disabled'}"
    driver = f"{'simulated driver' if info.simulated else 'driver'} {info.version}"
    console.print(f"{interpreter}; {driver}; {device.name}; NVRTC {'.'.join(map(str, ftcuda.nvrtc_version()))}")
    if gil_is_wrong():
        console.print("the GIL is enabled on a free-threaded build: an extension module turned it on", style="red")
        return 1

    way = "as one graph" if options.graph else "call by call"
    console.print(f"each request is submitted {way}")
    requests = options.requests or (400 if info.simulated else 20_000)
    _, _, images, labels = split(*load_digits())
    logits = forward(images, load_weights())
    check_margins(logits)
    model = SharedModel(device, load_weights())
    description = TextColumn("{task.description:>10}", markup=False)
    columns = (description, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        results = [
            measure(model, int(threads), requests, images, logits, progress, with_graph=options.graph)
            for threads in options.threads.split(",")
        ]

    table = Table(
        "threads",
        "requests/s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "slowest ms",
        title="every answer equals the numpy reference",
    )
    for result in results:
        row = (
            result["threads"],
            f"{result['requests_per_second']:,.0f}",
            *(f"{result[p]:.3f}" for p in ("p50_ms", "p95_ms", "p99_ms", "slowest_ms")),
        )
        table.add_row(*map(str, row))
    console.print(table)
    accuracy = float(np.mean(logits.argmax(axis=1) == labels))
    console.print(f"accuracy on {len(images)} held-out digits: {accuracy:.4f}, the reference's own, image by image")
    plot(results, f"{interpreter}; {driver}; {device.name}; {way}", options.plot)
    console.print(f"plot: {options.plot}")
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    "interpreter": interpreter,
                    "driver": driver,
                    "device": device.name,
                    "submitted": way,
                    "accuracy": accuracy,
                    "results": results,
                },
                indent=1,
            )
        )
    if gil_is_wrong():
        console.print("the GIL was enabled while the example ran", style="red")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
