"""Runs the steps of gate.toml, two at a time, and says of each what became of it: ``.ci/run [STEP ...]``.

Steps that are named run with those whose results they use. Every step that can run does, whatever fails beside it. The
end of the output names each failed step, the command that repeats it alone and the last lines it wrote; then comes
pytest's summary. When all steps passed, ``build/gate.tree`` holds the hash of the tree, if it still is the tree.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "gate"
LANES = 2  # one for each core of the machine that the minutes are of
LAST_LINES = 40
TIME_TO_END = 5.0  # seconds for a step that is ended, to end what it started in sessions of their own


@dataclass(frozen=True)
class Step:
    """A command that must succeed."""

    name: str
    run: str
    minutes: float  # that it takes beside another step, with warm caches
    after: tuple[str, ...] = ()  # the steps whose results it uses

    @property
    def limit(self) -> float:
        """Seconds after which it hangs: far from what a slow machine takes, which must not decide.

        From an empty home a build begins with CPython: 12 minutes, and more than 15 beside other work.
        """
        return 60 * max(30, 5 * self.minutes)


@dataclass
class Run:
    """A step under way, or what became of it."""

    step: Step
    begun: float = field(default_factory=time.monotonic)
    process: subprocess.Popen | None = None
    minutes: float = 0.0
    failure: str = ""  # in words; empty: it passed

    @property
    def log(self) -> Path:
        """Where its output is."""
        return LOGS / f"{self.step.name}.log"

    def start(self, environment: dict[str, str]) -> None:
        """Starts the command, in a group of its own, which can be ended as a whole."""
        print(f"---- {self.step.name}: {self.step.run}", flush=True)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", f"exec {self.step.run}"],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def end(self) -> None:
        """Ends the command and all that it started."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(TIME_TO_END)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def is_over(self) -> bool:
        """Whether it is done, or was ended because it hung."""
        code, seconds = self.process.poll(), time.monotonic() - self.begun
        if code is None and seconds < self.step.limit:
            return False
        self.end()
        self.minutes = seconds / 60
        if code is None:
            self.failure = f"it hung: ended after {self.minutes:.0f} minutes"
        elif code:
            self.failure = f"exit status {code}"
        verdict = f"FAILED ({self.failure})" if self.failure else "passed"
        print(f"==== {self.step.name}: {verdict} in {self.minutes:.1f} min", flush=True)
        return True

    def last_lines(self, count: int) -> str:
        """The last lines of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


def read(path: Path = ROOT / "ci" / "gate" / "gate.toml") -> tuple[float, list[Step]]:
    """Returns the limit in minutes and the steps, in the order in which they start."""
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    steps = [Step(name, **{**step, "after": tuple(step.get("after", ()))}) for name, step in told["steps"].items()]
    known: set[str] = set()
    for step in steps:
        if unknown := set(step.after) - known:
            raise ValueError(f"gate.toml: {step.name} comes after {', '.join(sorted(unknown))}, which stands below it")
        known.add(step.name)
    return told["limit"], steps


def next_of(waiting: list[Step], running: int, done: set[str]) -> list[Step]:
    """Returns the steps that may start now, in their order: as many as lanes are free."""
    return [step for step in waiting if done.issuperset(step.after)][: LANES - running]


def minutes_of(steps: list[Step]) -> float:
    """How long all of them take if each takes its minutes."""
    waiting, running, done, now = list(steps), {}, set(), 0.0
    while waiting or running:
        running |= {step: now + step.minutes for step in next_of(waiting, len(running), done)}
        waiting = [step for step in waiting if step not in running]
        first = min(running, key=running.get)
        now = running.pop(first)
        done.add(first.name)
    return now


def run_all(steps: list[Step], environment: dict[str, str]) -> dict[str, Run]:
    """Runs all steps whose requirements pass. Returns what became of each."""
    outcomes: dict[str, Run] = {}
    waiting, running = list(steps), []
    try:
        while waiting or running:
            for run in [run for run in running if run.is_over()]:
                running.remove(run)
                outcomes[run.step.name] = run
            passed = {name for name, run in outcomes.items() if not run.failure}
            for step in list(waiting):
                if blockers := [name for name in step.after if name in outcomes and name not in passed]:
                    waiting.remove(step)
                    outcomes[step.name] = Run(step, failure=f"not run, since {' and '.join(blockers)} failed")
                    print(f"==== {step.name}: {outcomes[step.name].failure}", flush=True)
            for step in next_of(waiting, len(running), passed):
                waiting.remove(step)
                running.append(Run(step))
                running[-1].start(environment)
            time.sleep(0.2)
    finally:
        for run in running:
            run.end()
    return outcomes


def git(*words: str) -> str:
    """What git answers."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def state() -> tuple[str, bool]:
    """The tree of HEAD, and whether nothing else is there."""
    return git("rev-parse", "HEAD^{tree}"), not git("status", "--porcelain")


def interrupted(number: int, _: object) -> None:
    """Ends the gate, and so its steps."""
    print(f"\ngate: interrupted by {signal.Signals(number).name}", flush=True)
    sys.exit(128 + number)


def with_required(names: list[str], steps: list[Step]) -> list[Step]:
    """Returns the named steps and those whose results they use, in their order; all of them if none is named."""
    wanted = set(names) or {step.name for step in steps}
    for step in reversed(steps):  # who is used stands above
        if step.name in wanted:
            wanted.update(step.after)
    return [step for step in steps if step.name in wanted]


def report(steps: list[Step], outcomes: dict[str, Run], minutes: float) -> None:
    """Prints the minutes of each step, what failed and how to repeat it, and pytest's summary."""
    outcomes = {step.name: outcomes[step.name] for step in steps}  # in their order, and not in that in which they ended
    print(f"\n{'step':<22}{'minutes':>8}{'recorded':>10}")
    for name, run in outcomes.items():
        print(f"{name:<22}{run.minutes:>8.1f}{run.step.minutes:>10.1f}  {run.failure}")
    print(f"{'all':<22}{minutes:>8.1f}{minutes_of(steps):>10.1f}")
    for name, run in outcomes.items():
        if run.process and run.failure:
            print(f"\n#### {name} FAILED: {run.failure}\n#### alone: .ci/run {name}")
            print(run.last_lines(LAST_LINES))
    failed = [name for name, run in outcomes.items() if run.failure]
    print(f"\ngate: {f'FAILED: {", ".join(failed)}' if failed else 'passed'}")
    if (summary := outcomes.get("tests")) and summary.process:
        print(summary.last_lines(1))


def run_gate(steps: list[Step], is_whole: bool) -> int:
    """Runs the steps, and certifies the tree if they are all that there are. Returns the exit status."""
    certificate = ROOT / "build" / "gate.tree"
    certificate.unlink(missing_ok=True)
    tree, is_clean = state()
    # What chooses among many cases chooses by this number: a second try of the same tree does the very same work.
    seed = str(int(tree[:6], 16))
    print(f"tree {tree}{'' if is_clean else ', and what is not committed'}; seed {seed}", flush=True)
    begun = time.monotonic()
    outcomes = run_all(steps, {"FTCUDA_SEED": seed})
    report(steps, outcomes, (time.monotonic() - begun) / 60)
    if any(run.failure for run in outcomes.values()):
        return 1
    if is_clean and is_whole:
        if state() != (tree, True):
            print("the tree has changed meanwhile: this says nothing of it")
            return 1
        certificate.write_text(f"{tree}\n", encoding="utf-8")
    return 0


def main(names: list[str]) -> int:
    _, steps = read()
    if unknown := set(names) - {step.name for step in steps}:
        known = ", ".join(step.name for step in steps)
        print(f"gate.toml has no step {', '.join(sorted(unknown))}; it has {known}", file=sys.stderr)
        return 2
    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(each, interrupted)
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another .ci/run is under way in this folder", file=sys.stderr)
            return 2
        return run_gate(with_required(names, steps), is_whole=not names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
