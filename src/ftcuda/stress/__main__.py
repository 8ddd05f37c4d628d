"""``python -m stress``: races ftcuda's objects on purpose. Every failure prints the command that repeats it."""

import argparse
import faulthandler
import os
import sys
from pathlib import Path


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stress", description=__doc__)
    parser.add_argument("--driver", choices=("sim", "cuda"), default=os.environ.get("FTCUDA_DRIVER", "sim"))
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all hazards together")
    parser.add_argument("--seeds", type=int, help="rounds of each hazard, instead of a time")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--hazard", action="append", help="only this one, or a file with one of yours; may be repeated")
    parser.add_argument("--in-process", action="store_true", help="leave out the hazards that start processes")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one round, after which it has hung")
    parser.add_argument("--sched", help="'random' or 'pct:<depth>': one thread at a time, switched as the seed says")
    parser.add_argument("--soak", action="store_true", help="a mixed load, and curves that must stay flat")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--html", type=Path, help="where to write a report with plots")
    options = parser.parse_args()
    if options.soak and options.seconds < 30:
        parser.error("a soak shorter than 30 seconds tells nothing")
    if options.timeout <= 0:
        parser.error("a round needs some time")
    return options


def main() -> int:
    options = parse()
    os.environ["FTCUDA_DRIVER"] = options.driver  # before the first use of ftcuda
    faulthandler.enable()
    from stress.session import run

    status, hung = run(options)
    sys.stdout.flush()
    sys.stderr.flush()
    if hung:
        os._exit(status)  # threads are stuck, and an orderly exit might wait for them
    faulthandler.dump_traceback_later(options.timeout, exit=True)  # nor may the exit take for ever
    return status


if __name__ == "__main__":
    sys.exit(main())
