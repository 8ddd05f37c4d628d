"""What was measured, as lines, a table, and a plot of latency against load.

``python -m benchmarks.serving.report FOLDER`` writes the table and the plot anew, from the folder's serving.json.
"""

import json
import statistics
import sys
from pathlib import Path

# Rows a second of ftcuda's batcher, at least, on an H200 with 16 threads, and 64 for `call`.
GOALS = {"submit_many": 4e6, "submit": 2e6, "call": 0.6e6}
HALF = 0.5  # of the load, at which the 99th percentile has a goal
P50, P99 = 49, 98  # of the percentiles


def median(found: list[dict], name: str = "rate") -> float:
    return statistics.median(each[name] for each in found)


def batch_seconds(found: dict) -> float:
    """Of a batch, on the average; 0 where that is not known."""
    return found["batch_seconds"] / found["batches"] if found.get("batches") else 0.0


def line(case: str, threads: int, found: list[dict]) -> str:
    latest = found[-1]
    text = f"{case}, {threads} threads: {latest['rate']:,.0f} rows/s"
    if latest["milliseconds"]:
        text += f", {latest['milliseconds'][P50]:.3f} ms, p99 {latest['milliseconds'][P99]:.3f}"
    if latest.get("batches"):
        text += f"; {latest['batch_rows'] / latest['batches']:.1f} rows a batch, {1e6 * batch_seconds(latest):.1f} us"
    return text


def goal(about: dict, backend: str, case: str, rate: float) -> str:
    """Of ftcuda without the GIL, on a GPU."""
    if about["simulated"] or not backend.startswith("ftcuda ") or "without the GIL" not in backend or case not in GOALS:
        return ""
    return f"{GOALS[case] / 1e6:g} M: {'met' if rate >= GOALS[case] else 'missed'}"


def of_load(result: dict) -> list[str]:
    about = result["about"]
    heads = "offered/s | answered/s | p50 us | p99 us | p99.9 us | rows a batch | batch us"
    lines = ["", f"| part of submit's rate | {heads} |", "| --- " * 8 + "|"]
    for part, each in zip(result["parts"], result["load"], strict=True):
        times = [1000 * each["milliseconds"][at] for at in (P50, P99, -1)] if each["milliseconds"] else [0.0] * 3
        rows = each["batch_rows"] / max(each["batches"], 1)
        rates = f"{each['offered']:,.0f} | {each['rate']:,.0f}"
        figures = " | ".join(f"{time:,.0f}" for time in times)
        lines.append(f"| {part:g} | {rates} | {figures} | {rows:.1f} | {1e6 * batch_seconds(each):.1f} |")
    if HALF in result["parts"]:
        half = result["load"][result["parts"].index(HALF)]
        most = 1e6 * (about["max_delay"] + 2 * batch_seconds(half))
        found = 1000 * half["milliseconds"][P99] if half["milliseconds"] else float("inf")
        verdict = "" if about["simulated"] else f": {'met' if found <= most else 'missed'}"
        lines += ["", f"At half load p99 is {found:,.0f} us; max_delay and two batches are {most:,.0f}{verdict}."]
    return lines


def table(result: dict) -> str:
    about = result["about"]
    lines = [
        f"{about['device']}, {about['processors']} processors, driver {about['driver']}, ftcuda at {about['commit']}; "
        f"perceptron {about['model']}, batches of {about['batch_sizes']}, medians of {about['repeats']}.",
        "",
        "| | case | threads | rows/s | p50 us | p99 us | rows a batch | goal |",
        "| --- " * 8 + "|",
    ]
    for row in result["rows"]:
        found = row["measured"]
        if not found:
            lines.append(f"| {row['backend']} | {row['case']} | {row['threads']} | failed | | | | |")
            continue
        rate, times, batch = median(found), " | ", ""
        if found[0]["milliseconds"]:
            times = " | ".join(
                f"{1000 * statistics.median(each['milliseconds'][at] for each in found):,.0f}" for at in (P50, P99)
            )
        if found[0].get("batches"):
            batch = f"{sum(each['batch_rows'] for each in found) / sum(each['batches'] for each in found):.1f}"
        said = goal(about, row["backend"], row["case"], rate)
        lines.append(
            f"| {row['backend']} | {row['case']} | {row['threads']} | {rate:,.0f} | {times} | {batch} | {said} |"
        )
    return "\n".join(lines + (of_load(result) if result["load"] else [])) + "\n"


def plot(result: dict, path: Path) -> None:
    """Latency against load."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    about, load = result["about"], [each for each in result["load"] if each["milliseconds"]]
    offered = [each["offered"] / 1e6 for each in load]
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for at, name in ((P50, "median"), (P99, "99th percentile")):
        axes.plot(offered, [1000 * each["milliseconds"][at] for each in load], marker="o", label=name)
    delay = 1e6 * about["max_delay"]
    axes.axhline(delay, color="grey", linestyle="--", label="max_delay")
    most = [delay + 2e6 * batch_seconds(each) for each in load]
    axes.plot(offered, most, color="grey", linestyle=":", label="max_delay and two batches")
    axes.set(xlabel="offered, millions of requests a second", ylabel="microseconds until the answer", yscale="log")
    axes.set_title(f"{about['device']}, {about['threads_of']['load']} threads, perceptron {tuple(about['model'])}")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def main() -> int:
    folder = Path(sys.argv[1])
    result = json.loads((folder / "serving.json").read_text())
    (folder / "serving.md").write_text(table(result))
    if result["load"]:
        plot(result, folder / "latency.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
