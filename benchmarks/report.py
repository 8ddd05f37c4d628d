"""What was measured, as lines, a markdown table and plots.

``python -m benchmarks.report FOLDER`` writes the table and the plots anew, from the folder's benchmarks.json.
"""

import json
import statistics
import sys
from pathlib import Path

from benchmarks.backends import NODES

BASELINE, OURS = "C++", "ftcuda"
PRIVATE = "ftcuda, a graph for each thread"
PERCENTILES = range(1, 100)

# Calls per second by the baseline's, at least, on a GPU.
GOALS = {
    ("launch", 1): 1 / 1.05,
    ("launch", 16): 0.97,
    ("bound_launch", 1): 1 / 1.03,
    ("bound_launch", 16): 0.99,
    ("allocate", 1): 3.0,
    ("allocate", 16): 20.0,
    ("is_done", 16): 20.0,
    ("copy_256_b", 1): 0.95,
    ("copy_256_b", 16): 0.95,
    ("copy_64_kib", 1): 0.95,
    ("copy_64_kib", 16): 0.95,
    ("worker", 1): 0.98,
    ("worker", 4): 0.98,
    ("worker", 16): 0.98,
    ("graph", 1): 0.97,
    ("graph", 4): 0.97,
    ("graph", 16): 0.97,
    ("shared_graph", 1): 0.97,
    ("shared_graph", 4): 0.97,
    ("shared_graph", 16): 0.97,
    ("overlapping_graph", 1): 0.97,
    ("overlapping_graph", 4): 0.97,
    ("overlapping_graph", 16): 0.97,
    ("overlapping_graph_of_4", 1): 0.97,
    ("overlapping_graph_of_4", 4): 0.97,
    ("overlapping_graph_of_4", 16): 0.97,
    ("rebound_graph", 1): 0.93,
    ("rebound_graph", 4): 0.93,
    ("rebound_graph", 16): 0.93,
    ("rebound_graph_of_4", 1): 0.93,
    ("rebound_graph_of_4", 4): 0.93,
    ("rebound_graph_of_4", 16): 0.93,
    ("worker_graph", 16): 0.98,
    ("await_round_trip", 1): 1 / 2,
    ("await_round_trip", 16): 1 / 1.3,
    ("await_in_one_loop", 1): 1 / 2,
    ("await_in_one_loop", 16): 1 / 1.3,
}
SHARED_BY_PRIVATE = 0.97  # calls per second, wherever both are measured
SLOWER_BY = {"record": 60, "wait": 60}  # nanoseconds that ftcuda may take beyond the baseline, on one thread

# Of the picture of graphs: a case, the beginning of a backend's name, and what is said of it.
GRAPHS = (
    ("overlapping_graph", BASELINE, "C++, an executable for each thread"),
    ("rebound_graph", BASELINE, "C++, the same, all nodes set"),
    ("overlapping_graph", OURS, "ftcuda, one graph for all threads"),
    ("rebound_graph", OURS, "ftcuda, the same, all arguments replaced"),
    ("overlapping_graph", "cuda.core", "{name}, a graph for each thread"),
    ("one_by_one", OURS, "ftcuda, kernel by kernel"),
)


def rates(row: dict, name: str) -> list[float]:
    """Returns the calls per second of all repeats."""
    return [one["rate"] for one in row["measured"].get(name, [])]


def nanoseconds(row: dict, name: str) -> float | None:
    """Returns the median time of a call in one thread; None if it was not measured."""
    found = rates(row, name)
    return row["threads"] / statistics.median(found) * 1e9 if found else None


def ratios(row: dict, other: str = BASELINE) -> list[float]:
    """Returns ftcuda's calls per second by the baseline's, or by another backend's, of each repeat."""
    return [mine / theirs for mine, theirs in zip(rates(row, OURS), rates(row, other), strict=False)]


def goal(row: dict) -> str:
    """Says whether a goal is met; nothing where there is none."""
    both = nanoseconds(row, OURS), nanoseconds(row, BASELINE)
    if None in both:
        return ""
    if row["case"] in SLOWER_BY and row["threads"] == 1:
        allowed = SLOWER_BY[row["case"]]
        return f"{both[0] - both[1]:+.0f} ns of +{allowed}: {'met' if both[0] - both[1] <= allowed else 'missed'}"
    wanted = GOALS.get((row["case"], row["threads"]))
    if wanted is None:
        return ""
    words = f"{wanted:.2f}: {'met' if statistics.median(ratios(row)) >= wanted else 'missed'}"
    if found := ratios(row, PRIVATE):
        ratio = statistics.median(found)
        met = "met" if ratio >= SHARED_BY_PRIVATE else "missed"
        words += f"; {ratio:.3f} of private graphs' rate, of {SHARED_BY_PRIVATE:.2f}: {met}"
    return words


def line(row: dict) -> str:
    """Returns one row in words."""
    words = [f"{name} {nanoseconds(row, name):.0f} ns" for name in row["measured"] if rates(row, name)]
    if found := ratios(row):
        words.append(f"ftcuda by C++ {statistics.median(found):.3f} ({min(found):.2f} to {max(found):.2f})")
    if found := ratios(row, PRIVATE):
        words.append(f"by private graphs {statistics.median(found):.3f} ({min(found):.2f} to {max(found):.2f})")
    return f"{row['case']}, {row['threads']} threads: {', '.join(words)}"


def table(about: dict, rows: list[dict]) -> str:
    """Returns the whole report in markdown."""
    names = [name for name in about["backends"] if any(rates(row, name) for row in rows)]
    head = ["call", "threads", *(f"{name}, ns" for name in names), "ftcuda by C++", "spread"]
    has_goals = not about["simulated"]  # whose times say nothing
    if has_goals:
        head.append("goal")
    lines = [
        f"{about['device']}, driver {about['driver']}, {about['interpreter']}, "
        f"ftcuda {about['ftcuda']} at commit {about['commit']}. "
        f"Nanoseconds per call and thread, medians of {about['repeats']}; calls per second of all threads by C++'s.",
        "",
        *(f"- {words}" for words in about["backends"].values()),
        "",
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
    ]
    for row in rows:
        times = [nanoseconds(row, name) for name in names]
        cells = [f"{time:,.0f}" if time is not None else "" for time in times]
        found = ratios(row)
        ratio = f"{statistics.median(found):.2f}" if found else ""
        spread = f"{min(found):.2f} to {max(found):.2f}" if found else ""
        call = row["case"].replace("_", " ")
        cells = [call, str(row["threads"]), *cells, ratio, spread, *([goal(row)] if has_goals else [])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rows_of_three(plt, count: int, width: float, height: float) -> tuple:
    """Makes a figure with so many axes, which are of that size in inches."""
    across = min(3, count)
    down = -(-count // across)
    size = width * across, height * down
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[count:]:
        axis.remove()
    return figure, axes.flat[:count]


def curve(rows: list[dict], case: str, backend: str) -> tuple[str, list[tuple[int, float]]]:
    """Returns a backend whose name begins so, and its points: threads, and the median of calls per second.

    That is a backend of this very name, or else the first; "" if no row has one.
    """
    rows = [row for row in rows if row["case"] == case]
    names = [name for row in rows for name in row["measured"] if name.startswith(backend) and rates(row, name)]
    name = backend if backend in names else next(iter(names), "")
    return name, [(row["threads"], statistics.median(rates(row, name))) for row in rows if rates(row, name)]


def plot_graphs(plt, title: str, rows: list[dict], folder: Path) -> None:
    """Draws kernels per second against threads, of graphs of NODES kernels; nothing unless some were measured."""
    from matplotlib.ticker import EngFormatter

    curves = [(words, *curve(rows, case, backend)) for case, backend, words in GRAPHS]
    if not any(points for _, _, points in curves):
        return
    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    for words, name, points in curves:
        threads, kernels = [count for count, _ in points], [NODES * rate for _, rate in points]
        if points:
            style = "--" if name == BASELINE else "-"
            axis.plot(threads, kernels, style, marker="o", label=words.format(name=name))
            axis.set_xticks(threads)
    axis.set(title=f"Graphs of {NODES} kernels: {title}", xlabel="threads", ylabel="kernels/s", ylim=(0, None))
    axis.yaxis.set_major_formatter(EngFormatter())
    figure.legend(loc="outside lower center", ncols=2)
    figure.savefig(folder / "graphs.png", dpi=80)
    plt.close(figure)


def plots(about: dict, rows: list[dict], folder: Path) -> None:
    """Draws throughput against threads for each call, and how long the worker's requests take."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter

    title = f"{about['device']}, driver {about['driver']}, commit {about['commit']}"
    plot_graphs(plt, title, rows, folder)
    colours = {name: f"C{index}" for index, name in enumerate(about["backends"])}  # the same everywhere
    cases = list(dict.fromkeys(row["case"] for row in rows))
    figure, axes = rows_of_three(plt, len(cases), 4.5, 3.2)
    lines = {}
    for axis, case in zip(axes, cases, strict=True):
        for name, colour in colours.items():
            points = [(row["threads"], rates(row, name)) for row in rows if row["case"] == case and rates(row, name)]
            if points:
                threads, found = zip(*points, strict=True)
                medians = [statistics.median(each) for each in found]
                (lines[name],) = axis.plot(threads, medians, marker="o", color=colour)
                axis.set_xticks(threads)
        axis.set(title=case.replace("_", " "), xlabel="threads", ylabel="calls/s", ylim=(0, None))
        axis.yaxis.set_major_formatter(EngFormatter())
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    figure.suptitle(title)
    figure.savefig(folder / "throughput.png", dpi=80)
    plt.close(figure)

    timed = [row for row in rows if any(one["milliseconds"] for each in row["measured"].values() for one in each)]
    if not timed:
        return
    figure, axes = rows_of_three(plt, len(timed), 5, 3.5)
    for axis, row in zip(axes, timed, strict=True):
        for name, found in row["measured"].items():
            curves = [one["milliseconds"] for one in found if one["milliseconds"]]
            if curves:
                medians = [statistics.median(values) for values in zip(*curves, strict=True)]
                axis.plot(PERCENTILES, medians, color=colours[name], label=name)
        case = row["case"].replace("_", " ")
        axis.set(title=f"{case}, {row['threads']} threads", xlabel="percentile", ylabel="ms", yscale="log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(title)
    figure.savefig(folder / "latency.png", dpi=80)
    plt.close(figure)


def main() -> int:
    folder = Path(sys.argv[1])
    measured = json.loads((folder / "benchmarks.json").read_text())
    (folder / "benchmarks.md").write_text(table(measured["about"], measured["rows"]))
    plots(measured["about"], measured["rows"], folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
