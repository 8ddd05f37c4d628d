"""From a command line to the exit status of a run."""

import argparse
import faulthandler
import importlib.util
import os
import sys
from pathlib import Path

from ftcuda.stress.program import Program
from ftcuda.testing import Schedule


def parse(program: Program) -> argparse.Namespace:
    """Returns the options of a command line; ends the process with status 2 if they make no sense."""
    parser = argparse.ArgumentParser(
        prog=program.command, description="Races threads on purpose, and says how to repeat every failure."
    )
    what = "a file with one, a folder of such files, or a module"
    given = f"a hazard: {'its name, ' if program.hazards else ''}{what}{'; by default all' if program.hazards else ''}"
    parser.add_argument("hazards", nargs="*", metavar="HAZARD", help=given)
    parser.add_argument("--hazard", action="append", metavar="HAZARD", help="the same; may be repeated")
    parser.add_argument("--driver", choices=("sim", "cuda"), default=os.environ.get("FTCUDA_DRIVER", "sim"))
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all hazards together")
    parser.add_argument("--seeds", type=int, help="rounds of each hazard, instead of a time")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--in-process", action="store_true", help="leave out the hazards that start processes")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one round, after which it has hung")
    parser.add_argument("--sched", help="'random' or 'pct:<depth>': one thread at a time, switched as the seed says")
    parser.add_argument("--soak", action="store_true", help="a mixed load, and curves that must stay flat")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--html", type=Path, help="where to write a report with plots")
    options = parser.parse_intermixed_args()
    options.hazard = [*options.hazards, *(options.hazard or ())]
    if not options.hazard and not program.hazards:
        parser.error(f"there is nothing to race; give {what}, as in `{program.command} my_hazard.py`")
    if options.soak and options.seconds < 30:
        parser.error("a soak shorter than 30 seconds tells nothing")
    if options.soak and sys.platform != "linux":
        parser.error("a soak reads /proc, which only Linux has")
    if not 0 < options.timeout <= 1_000_000 or not 0 < options.seconds <= 1_000_000_000:
        parser.error("a run, and a round, need some time")
    if options.threads < 1:
        parser.error("a round needs a thread")
    if options.seed < 0:
        parser.error(f"a seed is a number from 0 up, not {options.seed}")
    if options.seeds is not None and options.seeds < 1:
        parser.error(f"--seeds is a number of rounds from 1 up, not {options.seeds}")
    for file in (options.json, options.html):
        if file is not None and not file.absolute().parent.is_dir():
            parser.error(f"there is no folder for {file}")
    try:
        options.schedule = Schedule.parse(options.sched) if options.sched else None
    except ValueError as problem:
        parser.error(str(problem))
    return options


def missing(options: argparse.Namespace) -> str:
    """Returns which packages a run needs that are not installed, in words; empty if it has them all.

    They are looked for, not imported: one that is not made for it would switch the GIL on.
    """
    needed = {"rich": "to print its report", **({"matplotlib": "to plot for --html"} if options.html else {})}
    absent = [f"{name}, {why}" for name, why in needed.items() if importlib.util.find_spec(name) is None]
    return f"the harness needs {'; and '.join(absent)}: pip install 'ftcuda[stress]'" if absent else ""


def main(program: Program) -> int:
    """Runs the hazards that the command line names, and returns the exit status.

    That is 0 if all that could run was clean, 1 if not, and 2 if nothing was run because of the command line or the
    installation.
    """
    options = parse(program)
    if problem := missing(options):
        print(problem, file=sys.stderr)
        return 2
    os.environ["FTCUDA_DRIVER"] = options.driver  # before the first use of ftcuda
    faulthandler.enable()
    from ftcuda.stress.session import run

    status, hung = run(program, options)
    sys.stdout.flush()
    sys.stderr.flush()
    if hung:
        os._exit(status)  # threads are stuck, and an orderly exit might wait for them
    faulthandler.dump_traceback_later(options.timeout, exit=True)  # nor may the exit take for ever
    return status
