"""``python -m examples.serving``: a server, its load, and SIGTERM under load."""

import argparse
import json
import sys
import sysconfig
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ftcuda
from examples.serving.load import KINDS, Questions, measure
from examples.serving.process import ServerProcess, running
from examples.serving.shutdown import faults_of, terminate_under_load

ASKING = 8  # threads, and as many tasks, when SIGTERM comes


def images_per_batch(before: dict[str, float], after: dict[str, float]) -> float:
    """Of the batches between two looks at a server's metrics."""
    batches, images = (
        sum(count - before[name] for name, count in after.items() if name.startswith(prefix))
        for prefix in ("ftcuda_batcher_batches_total", "ftcuda_batcher_batch_rows_total")
    )
    return images / batches


def loads(server: ServerProcess, questions: Questions, clients: list[int], requests: int) -> list[dict]:
    """The figures of each kind and number of clients. Raises SystemExit if the server counts otherwise than they do."""
    results = []
    for kind in KINDS:
        for count in clients:
            before = server.metrics()
            result = measure(server.port, questions, kind, count, requests)
            after = server.metrics()
            counted = after["digits_accepted_total"] - before["digits_accepted_total"]
            if counted != requests:
                raise SystemExit(f"{requests} requests were answered, the server counts {counted:g}")
            results.append(result | {"images_per_batch": images_per_batch(before, after)})
    return results


def print_table(console: Console, results: list[dict]) -> None:
    table = Table(
        "clients",
        "",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "images a batch",
        title="every answer equals the numpy reference",
    )
    for result in results:
        table.add_row(
            str(result["clients"]),
            result["kind"],
            f"{result['requests_per_second']:,.0f}",
            f"{result['p50_ms']:.2f}",
            f"{result['p99_ms']:.2f}",
            f"{result['images_per_batch']:.2f}",
        )
    console.print(table)


def plot(results: list[dict], title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for kind in KINDS:
        rows = [result for result in results if result["kind"] == kind]
        clients = [row["clients"] for row in rows]
        left.plot(clients, [row["requests_per_second"] for row in rows], marker="o", label=kind)
        for name in ("p50_ms", "p99_ms"):
            label = f"{name.removesuffix('_ms')}, {kind}"
            right.plot(clients, [row[name] for row in rows], marker="o", label=label)
        left.set(xlabel="clients", ylabel="requests per second", xticks=clients, ylim=(0, None))
        right.set(xlabel="clients", ylabel="latency in ms", xticks=clients, ylim=(0, None))
    left.legend()
    right.legend()
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.serving", description=__doc__)
    parser.add_argument("--requests", type=int, help="requests for each number of clients, of each kind")
    parser.add_argument("--clients", default="1,4,16", help="numbers of clients, separated by commas")
    parser.add_argument("--workers", type=int, help="loops of the server")
    parser.add_argument("--plot", type=Path, default=Path("build/serving.png"))
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    console = Console(markup=False, emoji=False)

    info = ftcuda.driver_info()
    of_server = [] if options.workers is None else ["--workers", str(options.workers)]
    requests = options.requests or (400 if info.simulated else 10_000)
    clients = [int(count) for count in options.clients.split(",")]
    questions = Questions()
    with running(*of_server) as server:
        health = json.loads(server.get("/health")[1])
        interpreter = f"CPython {sys.version.split()[0]}, GIL {'disabled' if health['free_threaded'] else 'enabled'}"
        driver = f"{'simulated driver' if info.simulated else 'driver'} {health['driver']}"
        title = f"{interpreter}; {driver}; {health['device']}"
        console.print(title)
        if sysconfig.get_config_var("Py_GIL_DISABLED") and not health["free_threaded"]:
            console.print("the GIL is enabled on a free-threaded build: an extension module turned it on", style="red")
            return 1
        results = loads(server, questions, clients, requests)
        print_table(console, results)
        before = requests * len(results)
        tally, said = terminate_under_load(server, questions, max(requests // 2, 8 * ASKING), ASKING)
    sigterm = {name: len(found) for name, found in vars(tally).items()}
    table = Table("SIGTERM under load", "requests", title=f"{ASKING} threads and {ASKING} tasks asked")
    table.add_row("accepted, says the server", str(said["accepted"] - before))
    table.add_row("answered, say the clients", str(sigterm["seconds"]))
    table.add_row("refused, says the server", str(said["refused"]))
    table.add_row("turned away, say the clients", str(sigterm["turned_away"]))
    table.add_row("found no connection", str(sigterm["refused"]))
    table.add_row("connection closed before any byte", str(sigterm["closed_early"]))
    table.add_row("connection closed amid an answer", str(sigterm["broken"]))
    console.print(table)
    if faults := faults_of(tally, said, before):
        console.print(f"{len(faults)} faults, first: {faults[0]}", style="red")
        return 1
    console.print("each accepted request was answered, and the server ended with exit code 0")
    plot(results, title, options.plot)
    console.print(f"plot: {options.plot}")
    if options.json:
        figures = {"title": title, "results": results, "sigterm": sigterm, "server": said}
        options.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
