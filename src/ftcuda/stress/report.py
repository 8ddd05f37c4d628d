"""The report of a run: a table on the terminal, JSON, and a page of HTML with plots."""

import base64
import html
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ftcuda.stress.harness import Result
from ftcuda.stress.soak import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table


def verdict(result: Result) -> str:
    """Returns a hazard's outcome in words."""
    if result.skipped:
        return "not run"
    if result.failure:
        return "FAILED"
    if result.cases and result.covered < result.cases:
        return f"only {result.covered} of {result.cases} cases tried"
    return "clean"


def has_failed(result: Result) -> bool:
    """Whether a hazard that could run did not run clean."""
    return not result.skipped and (verdict(result) != "clean" or result.rounds == 0)


def table(results: list[Result]) -> "Table":
    """Returns the table for the terminal."""
    from rich.table import Table

    made = Table("hazard", "rounds", "operations", "cases", "interleavings", "seconds", "outcome")
    for result in results:
        cases = f"{result.covered}/{result.cases}" if result.cases else ""
        figures = (
            f"{result.rounds:,}",
            f"{result.operations:,}",
            cases,
            f"{result.interleavings or ''}",
            f"{result.seconds:.0f}",
        )
        made.add_row(result.name, *figures, verdict(result))
    return made


def curve_row(curve: Curve) -> tuple[str, str, str, str]:
    """Returns a curve's name, fitted growth with its interval, limit and outcome."""
    growth, error = curve.fit()
    return curve.name, f"{growth:+,.0f} ± {error:,.0f}", f"{curve.limit:,}", "flat" if curve.is_flat() else "GROWS"


def growth(curve: Curve) -> str:
    """Returns while which hazards a curve grew most, in words."""
    return ", ".join(f"{grown:+,.0f} while {name} ran" for name, grown in curve.growers()[:3])


def write_json(path: Path, about: dict[str, str], results: list[Result], curves: list[Curve]) -> None:
    """Writes everything as JSON."""
    path.write_text(
        json.dumps(
            {**about, "hazards": [asdict(result) for result in results], "curves": [asdict(curve) for curve in curves]},
            indent=1,
        )
    )


def figure(results: list[Result], curves: list[Curve]) -> "Figure":
    """Returns a figure: operations a second of each hazard, and the curves."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9, 3 + 2.2 * len(curves)), layout="constrained")
    axes = drawing.subplots(1 + len(curves), 1, squeeze=False, height_ratios=[2] + [1] * len(curves))[:, 0]
    ran = [result for result in results if result.seconds]
    axes[0].barh([result.name for result in ran], [result.operations / result.seconds for result in ran])
    axes[0].set(xscale="log", xlabel="operations/s, all threads")
    for axis, curve in zip(axes[1:], curves, strict=True):
        is_bytes = "memory" in curve.name
        values = [value / (1 << 20) if is_bytes else value for value in curve.values]
        axis.plot(minutes(curve), values, linewidth=0.8)
        axis.set(ylabel=f"{curve.name}\n[MiB]" if is_bytes else curve.name, ylim=(0, 1.1 * max(*values, 1)))
    if curves:
        axes[-1].set_xlabel("minutes")
    return drawing


def minutes(curve: Curve) -> list[float]:
    return [second / 60 for second in curve.seconds]


def write_html(path: Path, about: dict[str, str], results: list[Result], curves: list[Curve]) -> None:
    """Writes a page that stands alone."""
    picture = io.BytesIO()
    figure(results, curves).savefig(picture, format="png", dpi=100)
    head = "".join(f"<li>{html.escape(key)}: {html.escape(str(value))}</li>" for key, value in about.items())
    rows = "".join(
        f"<tr><td>{result.name}</td><td>{result.rounds}</td><td>{result.operations}</td>"
        f"<td>{result.covered}/{result.cases}</td><td>{html.escape(verdict(result))}<pre>{html.escape(result.failure)}</pre></td></tr>"
        for result in results
    )
    fits = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in curve_row(curve)) + "</tr>" for curve in curves
    )
    path.write_text(
        "<!doctype html><meta charset=utf-8><title>ftcuda stress</title>"
        "<style>body{font-family:sans-serif;max-width:60em;margin:auto}td{padding:.2em .6em;vertical-align:top}</style>"
        f"<h1>ftcuda stress</h1><ul>{head}</ul>"
        f"<table><tr><th>hazard<th>rounds<th>operations<th>cases<th>outcome</tr>{rows}</table>"
        f"<table><tr><th>curve<th>growth over the run<th>limit<th>outcome</tr>{fits}</table>"
        f"<img alt='' src='data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}'>"
    )
