"""One run of the harness, from its options to its exit status."""

import argparse
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import ftcuda
from ftcuda.testing import Schedule
from stress import report, soak
from stress.environment import Environment
from stress.harness import Result, Runner, names


def about(options: argparse.Namespace) -> dict[str, str]:
    """What ran, for the report's head."""
    return {
        "interpreter": f"CPython {sys.version.split()[0]}, GIL {'enabled' if sys._is_gil_enabled() else 'disabled'}",
        "driver": f"{ftcuda.driver_info().version}, {ftcuda.Device(0).name}",
        "threads": str(options.threads),
        "schedule": options.sched or "free",
        "first seed": str(options.seed),
    }


def command(options: argparse.Namespace) -> str:
    """The command of this run, up to the hazard and the seed."""
    schedule = f" --sched {options.sched}" if options.sched else ""
    return f"python -m stress --driver {options.driver} --threads {options.threads}{schedule}"


def run(options: argparse.Namespace) -> int:
    """Runs, prints and writes the report; 0 if everything that could run was clean."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    schedule = Schedule.parse(options.sched) if options.sched else None
    env = Environment()
    runner = Runner(env, options.threads, schedule, command(options))
    try:
        wanted = [name for name in options.hazard or names() if runner.prepare(name)]
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    if options.soak or options.in_process:
        wanted = [name for name in wanted if not runner.is_process(name)]
    head = about(options)
    console.print("; ".join(f"{key} {value}" for key, value in head.items()))
    curves = []
    with Progress(
        TextColumn("{task.description:>15}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        if options.soak:
            task = progress.add_task("soak", total=options.seconds, state="")
            curves = soak.run(
                runner,
                env,
                wanted,
                options.seed,
                options.seconds,
                lambda now: progress.update(task, completed=now),
            )
        else:
            for name in wanted:
                task = progress.add_task(name, total=None, state="")

                def advance(result: Result, task=task) -> None:
                    progress.update(task, state=f"{result.rounds} rounds")

                runner.run(name, options.seed, options.seconds / len(wanted), options.seeds, advance)
                progress.update(task, total=1, completed=1)
    results = [result for result in runner.results.values() if result.rounds or result.failure or result.skipped]
    console.print(report.table(results))
    for result in results:
        if result.skipped:
            console.print(f"{result.name} did not run: {result.skipped}", highlight=False)
        if result.failure:
            console.print(f"\n{result.name}: {result.failure}", markup=False, soft_wrap=True)
    short = bool(curves) and not curves[0].is_long_enough()
    if short:
        console.print("too few samples for curves: a soak must run longer, or failed too early")
        curves = []
    if curves:
        fits = Table("curve", "growth over the run", "limit", "outcome")
        for curve in curves:
            fits.add_row(*report.curve_row(curve))
        console.print(fits)
    if options.json:
        report.write_json(options.json, head, results, curves)
    if options.html:
        report.write_html(options.html, head, results, curves)
    partial = options.seeds is not None or options.soak  # asked for less than every case
    failed = [result.name for result in results if (result.failure if partial else report.has_failed(result))]
    return 1 if failed or short or not all(curve.is_flat() for curve in curves) or len(results) == 0 else 0
