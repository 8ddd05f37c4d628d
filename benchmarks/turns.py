"""Two measurements in turns, for each number of threads."""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """Returns a parser of what `compare` and all benchmarks take."""
    made = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    made.add_argument("--threads", default="1,2,4,8,16")
    made.add_argument("--repeats", type=int, default=5)
    made.add_argument("--json", type=Path)
    return made


def compare(
    options: argparse.Namespace,
    columns: tuple[str, str],
    digits: int,
    first: Callable[[int], float],
    second: Callable[[int], float],
) -> list[dict]:
    """Prints a table of medians, and returns its rows: what both give for a number of threads, and second by first."""
    print(f"| threads | {columns[0]} | {columns[1]} | ratio | spread |\n| --- | --- | --- | --- | --- |")
    rows = []
    for threads in map(int, options.threads.split(",")):
        pairs = [(first(threads), second(threads)) for _ in range(options.repeats)]
        one, other = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratios = [mine / theirs for theirs, mine in pairs]
        rows.append({"threads": threads, columns[0]: one, columns[1]: other, "ratios": ratios})
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"| {threads} | {one:.{digits}f} | {other:.{digits}f} | {other / one:.3f} | {spread} |", flush=True)
    return rows
