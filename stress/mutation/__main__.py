"""``python -m stress.mutation``: builds each mutant of the core and sees that something notices it."""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent.parent
MUTANTS = Path(__file__).parent / "mutants.toml"
COPIED = (
    "src",
    "tests",
    "stress",
    "docs",
    "examples",
    "VERSION",
    "meson.build",
    "meson.options",
    "pyproject.toml",
    "LICENSE",
    "README.md",
)
TRIED = Path(__file__).parent / "tried.toml"
BOUND = 300  # seconds for one killer, which has noticed nothing when it is cut: far from what a slow machine takes
CERTAIN = "test "  # killers that notice in each run, or in none


@dataclass
class Outcome:
    """What became of a mutant."""

    name: str
    removes: str
    killer: str = ""  # what noticed it; empty: it survived
    seconds: float = 0.0
    justified: str = ""

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        return self.killer or (f"survives: {self.justified}" if self.justified else "SURVIVES")


class Workshop:
    """A copy of the tree that is mutated, its two builds, and the programs that run with them."""

    def __init__(self, folder: Path) -> None:
        self.tree, self._install = folder / "tree", folder / "install"
        # Where ci/debug.sh has them in its tree, so that a ccache knows what that compiled.
        self._build, self._tsan = (self.tree / "build" / name / "meson" for name in ("debug", "debug-thread"))
        for name in COPIED:
            copy_changed(ROOT / name, self.tree / name)
        common = ["-Dunity=on", "-Doptimization=1", "-Ddebug_locks=true"]
        races = ["-Dextension=false", "-Dcore_tests=true", "-Dcpp_args=-g1", "-Db_sanitize=thread", "-Db_lundef=false"]
        points = ["-Dschedule_points=true", f"--prefix={self._install}", "-Dpython.install_env=prefix"]
        self._setup(self._build, common + points)
        self._setup(self._tsan, common + races)

    def _setup(self, folder: Path, options: list[str]) -> None:
        if not (folder / "build.ninja").exists():
            subprocess.run(["meson", "setup", folder, self.tree, *options], check=True, stdout=subprocess.DEVNULL)

    def build(self, killer: str) -> None:
        """Builds what a killer needs."""
        target = [self._tsan] if killer.startswith("tsan ") else [self._build, "install"]
        result = subprocess.run(["ninja", "-C", *target], capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"the mutant does not build:\n{result.stdout[-2000:]}")

    def notices(self, killer: str) -> bool:
        """Runs a killer; whether it failed, as it should; `said` is what it said. One that is cut noticed nothing."""
        kind, *rest = killer.split()
        stress = [sys.executable, "-X", "faulthandler", "-m", "stress", "--driver", "sim", "--threads", "6", "--hazard"]
        command = {
            "pct": lambda: [*stress, rest[0], "--sched", "pct:10", "--seeds", rest[1]],
            "random": lambda: [*stress, rest[0], "--sched", "random", "--seeds", rest[1]],
            "free": lambda: [*stress, rest[0], "--seconds", rest[1]],
            "test": lambda: [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "--timeout=60",
                "-p",
                "no:cacheprovider",
                *rest,
            ],
            "tsan": lambda: ["meson", "test", "-C", str(self._tsan), "--no-rebuild", "--repeat", "3", *rest],
        }[kind]()
        (site,) = self._install.glob("lib*/python3*/site-packages") if kind != "tsan" else [self._install]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{site}{os.pathsep}{self.tree}",
            "FTCUDA_DRIVER": "sim",
        }
        if kind == "tsan":  # only there: tests leave much out under ThreadSanitizer
            environment["TSAN_OPTIONS"] = "halt_on_error=1:exitcode=66"
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                command, cwd=self.tree, env=environment, stdout=said, stderr=said, start_new_session=True
            )
            try:
                code = process.wait(BOUND)
            except subprocess.TimeoutExpired:
                code = 0
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # and what it started
                process.wait()
            said.seek(0)
            self.said = said.read().decode()[-2000:]
        if kind != "tsan" and code == 2:
            raise RuntimeError(f"{killer}: {self.said}")
        return code != 0


def copy_changed(source: Path, target: Path) -> None:
    """Makes `target` the same. Files that are the same already keep their times, and so are not built again."""
    if source.is_dir():
        names = {path.name for path in source.iterdir()} - {"__pycache__"}
        for old in target.iterdir() if target.exists() else ():
            if old.name not in names:
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        for name in names:
            copy_changed(source / name, target / name)
    elif not target.exists() or target.read_bytes() != source.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def try_mutant(workshop: Workshop, name: str, mutant: dict) -> Outcome:
    """Builds one mutant and sets its killers on it, the certain ones first, until one notices."""
    outcome = Outcome(name, mutant["removes"], justified=mutant.get("justified", ""))
    path = workshop.tree / "src" / "ftcuda" / mutant["file"]
    original = path.read_text()
    if original.count(mutant["before"]) != 1:
        raise ValueError(
            f"{name}: what it replaces stands {original.count(mutant['before'])} times in {mutant['file']}"
        )
    begin = time.monotonic()
    try:
        path.write_text(original.replace(mutant["before"], mutant["after"]))
        for killer in sorted(mutant["killers"], key=lambda each: not each.startswith(CERTAIN)):
            workshop.build(killer)
            if workshop.notices(killer):
                outcome.killer = killer
                break
    finally:
        path.write_text(original)
    outcome.seconds = time.monotonic() - begin
    return outcome


def quick_killers(mutants: Iterable[dict]) -> list[str]:
    """Returns the killers that pass in seconds where nothing is wrong; the others search through seeds until then."""
    return sorted(
        {killer for mutant in mutants for killer in mutant["killers"] if killer.startswith(("test ", "tsan "))}
    )


def digest(file: str, mutants: dict[str, dict]) -> str:
    """Returns what changes with a file of the sources, or with its mutants."""
    own = {name: mutant for name, mutant in mutants.items() if mutant["file"] == file}
    told = (ROOT / "src" / "ftcuda" / file).read_bytes() + json.dumps(own, sort_keys=True).encode()
    return hashlib.sha256(told).hexdigest()[:16]


def is_certain(mutant: dict) -> bool:
    """Whether something notices the mutant in each run."""
    return "justified" not in mutant and any(killer.startswith(CERTAIN) for killer in mutant["killers"])


def changed(mutants: dict[str, dict], tried: dict[str, str], also_untried: bool = False) -> Iterable[str]:
    """Yields the mutants of files that changed since all of them were noticed, if something notices them for certain.

    Those of files that were never tried as a whole nobody knows to be noticed: only if they are asked for, and last.
    """
    for is_known in (True, False) if also_untried else (True,):
        for name, mutant in mutants.items():
            file = mutant["file"]
            if is_certain(mutant) and (file in tried) is is_known and tried.get(file) != digest(file, mutants):
                yield name


def record(mutants: dict[str, dict], noticed: set[str]) -> None:
    """Keeps in tried.toml which files had all their mutants noticed that something notices for certain."""
    tried = tomllib.loads(TRIED.read_text())
    for file in {mutant["file"] for mutant in mutants.values()}:
        own = {name for name, mutant in mutants.items() if mutant["file"] == file and is_certain(mutant)}
        if own and own <= noticed:
            tried[file] = digest(file, mutants)
    head = TRIED.read_text().partition("\n\n")[0].rstrip()
    TRIED.write_text(f"{head}\n\n" + "".join(f'"{file}" = "{tried[file]}"\n' for file in sorted(tried)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stress.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these mutants")
    parser.add_argument("--share", type=int, nargs=2, metavar=("NUMBER", "SHARES"), help="only one of so many shares")
    parser.add_argument(
        "--changed",
        type=int,
        metavar="COUNT",
        help="at most so many of files that changed since they were recorded; with --record also of others",
    )
    parser.add_argument("--record", action="store_true", help="keep in tried.toml which files had all noticed")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutation", help="where to build")
    parser.add_argument("--json", type=Path, help="where to write the outcomes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and the killer under way with it
    console = Console(width=None if sys.stdout.isatty() else 140, markup=False, emoji=False)
    known = mutants = tomllib.loads(MUTANTS.read_text())
    if unknown := set(options.names) - set(mutants):
        print(f"no mutant {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    wanted = options.names or list(mutants)
    if options.share:
        number, shares = options.share
        wanted = wanted[number % shares :: shares]
        print(f"share {number % shares} of {shares}: {len(wanted)} of {len(mutants)} mutants", flush=True)
    if options.changed is not None:
        found = list(changed(mutants, tomllib.loads(TRIED.read_text()), also_untried=options.record))
        wanted = found[: options.changed]
        print(f"{len(wanted)} of {len(found)} mutants of files that changed", flush=True)
        mutants = {
            name: {**known[name], "killers": [each for each in known[name]["killers"] if each.startswith(CERTAIN)]}
            for name in wanted
        }
        if not wanted:
            return 0
    workshop = Workshop(options.folder.resolve())
    outcomes = []
    for killer in quick_killers(mutants[name] for name in wanted):
        workshop.build(killer)
        if workshop.notices(killer):
            print(
                f"'{killer}' fails without any mutant: what it noticed would mean nothing:\n{workshop.said}",
                file=sys.stderr,
            )
            return 2
    for name in wanted:
        outcomes.append(try_mutant(workshop, name, mutants[name]))
        console.print(f"{name}: {outcomes[-1].verdict} ({outcomes[-1].seconds:.0f} s)", highlight=False)
        if options.record:  # now: all of them take hours, and may be cut
            record(known, {each.name for each in outcomes if each.killer.startswith(CERTAIN)})
    table = Table("mutant", "removes", "noticed by", "seconds")
    for outcome in outcomes:
        table.add_row(outcome.name, outcome.removes, outcome.verdict, f"{outcome.seconds:.0f}")
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    survivors = [outcome.name for outcome in outcomes if not outcome.killer and not outcome.justified]
    noticed = sum(bool(outcome.killer) for outcome in outcomes)
    console.print(f"{len(outcomes)} mutants, {noticed} noticed, {len(survivors)} unjustified survivors: {survivors}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
