"""One run of the harness, from its options to its exit status."""

import argparse
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import ftcuda
from ftcuda.stress import report, soak
from ftcuda.stress.harness import Result, Runner, has_points
from ftcuda.stress.program import NoHazardError, Program


def about(options: argparse.Namespace) -> dict[str, str]:
    """What ran, for the report's head."""
    return {
        "interpreter": f"CPython {sys.version.split()[0]}, GIL {'enabled' if sys._is_gil_enabled() else 'disabled'}",
        "driver": f"{ftcuda.driver_info().version}, {ftcuda.Device(0).name}",
        "threads": str(options.threads),
        "schedule": options.sched or "free",
        "first seed": str(options.seed),
    }


def blind_spot(options: argparse.Namespace) -> str:
    """What this build cannot find, in words for the terminal; empty if it finds all that there is to find."""
    if has_points():
        return ""
    text = (
        "NOTE: this build has no schedule points (-Dschedule_points=true). It does not find deadlocks "
        "between exclusive sections that are taken in different orders (`with a.exclusive(): with b.exclusive():` "
        "against the reverse), except by hanging in one"
    )
    if options.sched:
        text += (
            ", and --sched switches at driver calls only: a thread that waits for an exclusive section, or for another "
            "one that loads the same module, keeps its turn, which is reported as a thread that did nothing"
        )
    return text + "."


def run(program: Program, options: argparse.Namespace) -> tuple[int, bool]:
    """Runs, prints and writes the report.

    Returns the exit status, 0 if everything that could run was clean; and whether threads of a round are stuck.
    """
    console = Console(width=None if sys.stdout.isatty() else 120, markup=False, emoji=False)
    try:
        env = program.environment()
        runner = Runner(program, env, options.threads, options.schedule, options.timeout)
        given = [hazard for name in options.hazard for hazard in program.hazards_of(name)] or program.own()
        wanted = [name for name in dict.fromkeys(given) if runner.prepare(name)]
    except (NoHazardError, ftcuda.DriverNotFoundError) as problem:
        print(problem, file=sys.stderr)
        return 2, False
    if options.soak or options.in_process:
        wanted = [name for name in wanted if not runner.is_process(name)]
    head = about(options)
    console.print("; ".join(f"{key} {value}" for key, value in head.items()))
    if note := blind_spot(options):
        console.print(note, markup=False, highlight=False, style="bold yellow")
    curves = []
    with Progress(
        TextColumn("{task.description:>15}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[state]}", markup=False),
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
                if runner.results[name].hung:  # its threads are stuck, perhaps with what the next ones need
                    break
    hung = [result.name for result in runner.results.values() if result.hung]
    for name in wanted:
        if hung and runner.results[name].rounds == 0 and not runner.results[name].failure:
            runner.results[name].skipped = f"{hung[0]} hung before"
    results = [result for result in runner.results.values() if result.rounds or result.failure or result.skipped]
    console.print(report.table(results))
    for result in results:
        if result.skipped:
            console.print(f"{result.name} did not run: {result.skipped}", highlight=False)
        if result.failure:
            console.print(f"\n{result.name}: {result.failure}", soft_wrap=True)
    short = bool(curves) and not curves[0].is_long_enough()
    if short:
        console.print("too few samples for curves: a soak must run longer, or failed too early")
        curves = []
    if curves:
        fits = Table("curve", "growth over the run", "limit", "outcome")
        for curve in curves:
            fits.add_row(*report.curve_row(curve))
        console.print(fits)
        for curve in curves:
            if not curve.is_flat():
                console.print(f"{curve.name} grew {report.growth(curve)}", highlight=False)
    if options.json:
        report.write_json(options.json, head, results, curves)
    if options.html:
        report.write_html(options.html, head, results, curves)
    partial = options.seeds is not None or options.soak  # asked for less than every case
    failed = [result.name for result in results if (result.failure if partial else report.has_failed(result))]
    good = not failed and not short and all(curve.is_flat() for curve in curves) and len(results) != 0
    return 0 if good else 1, bool(hung)
