"""What a hazard is."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

from ftcuda import ClosedError
from stress.environment import Environment


class Hazard:
    """One thing that may go wrong between threads.

    A hazard is a class in a file of its own, made once for a run. A round has a seed, from which all its randomness
    comes: `round` makes its state, `act` is what each thread does to it, `check` raises if it went wrong. `oracle` says
    by which answers they know.
    """

    oracle = ""
    threads = 0  # that it wants at least; 0: whatever the run has
    simulated_only = ""  # why it needs the simulated driver
    unscheduled = ""  # why it cannot run one thread at a time
    timeout = 30.0  # seconds for all of a round; set by the run

    def __init__(self, env: Environment) -> None:
        self.env = env

    def round(self, seed: int, random):
        """Returns the state of one round."""

    def act(self, state, index: int, random) -> int:
        """Does thread `index`'s part; returns the number of operations."""
        raise NotImplementedError

    def check(self, state) -> None:
        """Raises if the round went wrong. Nothing beyond what `act` raised, if it is not overridden."""

    def live(self, *kinds: str) -> dict[str, int]:
        """Returns the live handles of some kinds, with nothing running; none on a GPU, which does not tell."""
        if not self.env.is_simulated:
            return {}
        from ftcuda.testing import simulation

        self.env.device.memory_resource.trim()
        self.env.device.sync()
        live = simulation.live()
        return {kind: live[kind] for kind in kinds}

    def coverage(self) -> tuple[int, int] | None:
        """Returns how many of how many cases were tried; None for hazards of one case."""
        return None


class ProcessHazard(Hazard):
    """A hazard whose every round is a process of its own: `program`, with `THREADS` and `SEED` defined."""

    unscheduled = "it runs in processes of its own"
    program = ""
    silent = False  # whether it must say nothing
    processes = 2  # threads of the harness that run one at a time

    def act(self, state, index, random):
        if index >= self.processes:
            return 0
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}
        limit = 0.7 * self.timeout  # the harness's own time runs out later
        head = (
            f"THREADS = 8\nSEED = {int(random.integers(2**31))}\n"
            f"import faulthandler; faulthandler.dump_traceback_later({limit}, exit=True)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-W", "error", "-c", head + self.program],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                said, _ = process.communicate(timeout=limit + 0.1 * self.timeout)
            except subprocess.TimeoutExpired:  # it could not even say where it hangs, or what it started still runs
                end_with_children(process)
                said, _ = process.communicate()
                raise AssertionError(
                    f"the process, or one that it started, did not end within {limit:g} s\n{said}"
                ) from None
        if process.returncode != 0:
            raise AssertionError(f"exit {process.returncode}\n{said}")
        if self.silent and said:
            raise AssertionError(f"it said: {said}")
        return 1


def end_with_children(process: subprocess.Popen) -> None:
    """Ends a process that leads a session, and what it started, if there are sessions here."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def unless_closed(call) -> bool:
    """Runs `call`; False if it found its object closed."""
    try:
        call()
    except ClosedError:
        return False
    return True
