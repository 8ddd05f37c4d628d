"""Hazards: what ``python -m ftcuda.stress`` races, round by round. ``docs/stress.md`` has a whole one."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numpy.random import Generator

from ftcuda import ClosedError, Device, Stream, driver_info

__all__ = ["Environment", "Hazard", "ProcessHazard", "unless_closed"]


class Environment:
    """What all hazards of a run share: device 0, and a stream that nobody closes.

    Made once for a run, and constant afterwards. What it refers to may be used by all threads.

    Attributes
    ----------
    is_simulated : bool
        Whether the run is on the simulated driver.
    device : Device
    stream : Stream
        One that all threads and rounds share. A hazard whose streams are its own makes them in `round`.
    """

    is_simulated: bool
    device: Device
    stream: Stream

    def __init__(self) -> None:
        self.is_simulated = driver_info().simulated
        self.device = Device(0)
        self.stream = self.device.create_stream()
        self.device.allocate(64).close()  # makes the context's own stream for frees, which is no leak
        self.device.sync()


class Hazard:
    """One thing that may go wrong between threads.

    A hazard is a subclass in a file of its own. The run makes it once, and calls it in rounds. Each round has a seed,
    from which all its randomness comes: `round` makes what the threads share, `act` is what each thread does to it, and
    `check` raises if it went wrong. Thread safety: `act` runs in all threads at once; the other methods run in one
    thread, while no thread is in `act`.

    Under a schedule (``--sched``) one thread runs at a time, and switches at driver calls. A thread that holds a lock
    across such a call is then waited for by others: the schedule must know that lock, so that it is one of
    :mod:`ftcuda.testing.schedule`. A hazard that cannot do that says why in `unscheduled`.

    Parameters
    ----------
    env : Environment

    Attributes
    ----------
    env : Environment
    oracle : str
        A sentence that says by which answers the hazard knows that something went wrong.
    threads : int
        How many threads it wants at least; 0 if the run's number will do.
    simulated_only : str
        Why it needs the simulated driver; empty if it does not.
    unscheduled : str
        Why it cannot run one thread at a time; empty if it can.
    timeout : float
        Seconds for all of a round; set by the run.
    """

    env: Environment
    oracle: str = ""
    threads: int = 0
    simulated_only: str = ""
    unscheduled: str = ""
    timeout: float = 30.0

    def __init__(self, env: Environment) -> None:
        self.env = env

    def round(self, seed: int, random: Generator) -> Any:
        """Returns what the threads of one round share; None, if it is not overridden.

        Thread safety: exclusive.

        Parameters
        ----------
        seed : int
        random : numpy.random.Generator
            Made from the seed: all randomness is to come from here.
        """

    def act(self, state: Any, index: int, random: Generator) -> int:
        """Does one thread's part of a round.

        What it raises fails the round. Thread safety: shared.

        Parameters
        ----------
        state : object
            What `round` returned.
        index : int
            Of the thread, from 0.
        random : numpy.random.Generator
            Made from the seed and the index.

        Returns
        -------
        int
            How many operations that were, for the report.
        """
        raise NotImplementedError

    def check(self, state: Any) -> None:
        """Raises if the round went wrong. If it is not overridden, only what `act` raised counts.

        It is not called after `act` raised. Thread safety: exclusive.

        Parameters
        ----------
        state : object
            What `round` returned.
        """

    def live(self, *kinds: str) -> dict[str, int]:
        """Returns how many handles of some kinds the driver has, once the device is idle and its memory is trimmed.

        Thread safety: exclusive.

        Parameters
        ----------
        *kinds : str
            Of ``"stream"``, ``"event"``, ``"module"``, ``"pool"``, ``"device_allocation"``, ``"pinned_allocation"``.

        Returns
        -------
        dict
            The number of each kind; empty on a GPU, whose driver does not tell.
        """
        if not self.env.is_simulated:
            return {}
        from ftcuda.testing import simulation

        self.env.device.memory_resource.trim()
        self.env.device.sync()
        live = simulation.live()
        return {kind: live[kind] for kind in kinds}

    def coverage(self) -> tuple[int, int] | None:
        """Returns how many cases were tried, of how many; None for a hazard of one case.

        A hazard of several cases chooses one by the seed. A run by time tries each of them once at least.
        Thread safety: exclusive.
        """
        return None


class ProcessHazard(Hazard):
    """A hazard whose rounds are processes of their own. Each fails unless its process ends with status 0.

    Thread safety: as that of :class:`Hazard`.

    Attributes
    ----------
    program : str
        What each process runs, with `THREADS` and `SEED` defined.
    silent : bool
        Whether the process must print nothing.
    processes : int
        How many of them run at a time.
    """

    unscheduled: str = "it runs in processes of its own"
    program: str = ""
    silent: bool = False
    processes: int = 2

    def act(self, state: Any, index: int, random: Generator) -> int:
        """Runs one process, in the first threads of a round. Thread safety: shared.

        Raises
        ------
        AssertionError
            The process failed, did not end in time, or said something. The message has what it said.
        """
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
                _end_with_children(process)
                said, _ = process.communicate()
                raise AssertionError(
                    f"the process, or one that it started, did not end within {limit:g} s\n{said}"
                ) from None
        if process.returncode != 0:
            raise AssertionError(f"exit {process.returncode}\n{said}")
        if self.silent and said:
            raise AssertionError(f"it said: {said}")
        return 1


def _end_with_children(process: subprocess.Popen[str]) -> None:
    """Ends a process that leads a session, and what it started, if there are sessions here."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def unless_closed(call: Callable[[], object]) -> bool:
    """Runs `call`, for hazards in which another thread closes what it uses. Thread safety: shared.

    Parameters
    ----------
    call : callable
        Takes nothing.

    Returns
    -------
    bool
        False if it raised :class:`ftcuda.ClosedError`, which is no failure.
    """
    try:
        call()
    except ClosedError:
        return False
    return True
