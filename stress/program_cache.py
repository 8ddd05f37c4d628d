"""``python -m stress.program_cache``: threads of many processes compile the same kernels through one folder.

Each kernel must be compiled once, and every thread must have the right one, which it launches. Meanwhile processes are
killed at random, and others take their place: what one had compiled and not yet kept is compiled once more, and of how
many kernels that holds is a matter of luck, for each of its threads may be at one. The journal says who compiled what,
and since when somebody holds it: so each compilation is either needed, or wrong.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, launch
from ftcuda.utils import FileStreamProgramCache

LIMIT = 300  # seconds for a process
ONE = LaunchConfig(grid=1, block=1)


def program(number: int) -> Program:
    """Writes a number of its own."""
    return Program(f'extern "C" __global__ void own(int* place) {{ *place = {1000 + number}; }}', "c++")


@dataclass(frozen=True)
class Entry:
    """A line of the journal: a process compiled a kernel, or had it from `compile`."""

    what: str  # COMPILED or HELD
    number: int
    process: int


COMPILED, HELD = "compiled", "held"


class Journal:
    """What all processes did, in one order. It is written at once, since the process may be killed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, what: str, number: int) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{what} {number} {os.getpid()}\n".encode())
        os.close(descriptor)

    def entries(self) -> list[Entry]:
        try:
            lines = self._path.read_text().splitlines()
        except FileNotFoundError:
            return []
        return [Entry(what, int(number), int(process)) for what, number, process in map(str.split, lines)]

    def compiled(self) -> list[Entry]:
        return [entry for entry in self.entries() if entry.what == COMPILED]


class Log:
    """What `compile` tells of a compilation, and of nothing else."""

    def __init__(self, journal: Journal, number: int) -> None:
        self._journal, self._number = journal, number

    def write(self, text: str) -> None:
        self._journal.add(COMPILED, self._number)


class Worker:
    """A process: each of its threads wants every kernel, in an order of its own."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._device, self._options, self._journal = Device(0), options, Journal(folder / "journal")
        self._cache = FileStreamProgramCache(folder / "cache")
        self._pinned = LegacyPinnedMemoryResource()
        self.complaints: list[BaseException] = []

    def run(self) -> int:
        """Returns how many threads failed."""
        threads = [threading.Thread(target=self._of_thread, args=(index,)) for index in range(self._options.threads)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for complaint in self.complaints:
            print(f"{type(complaint).__name__}: {complaint}", file=sys.stderr)
        return len(self.complaints)

    def _of_thread(self, index: int) -> None:
        try:
            self._device.set_current()
            stream, place = self._device.create_stream(), self._pinned.allocate(4)
            seen = np.frombuffer(place, np.int32)
            for number in np.random.default_rng(self._options.seed + index).permutation(self._options.kernels):
                code = program(number).compile(logs=Log(self._journal, number), cache=self._cache)
                self._journal.add(HELD, number)
                launch(stream, ONE, code.get_kernel("own"), place)
                stream.sync()
                if seen[0] != 1000 + number:
                    raise AssertionError(f"kernel {number} wrote {seen[0]}: it is another one's code")
            stream.close()
        except BaseException as complaint:
            self.complaints.append(complaint)


def start(folder: Path, options: argparse.Namespace, seed: int) -> subprocess.Popen[bytes]:
    """Another process."""
    arguments = ["--worker", str(folder), "--seed", str(seed)]
    for name in ("kernels", "threads"):
        arguments += [f"--{name}", str(getattr(options, name))]
    return subprocess.Popen([sys.executable, "-m", "stress.program_cache", *arguments])


def differences(journal: list[Entry], kept: int, kernels: int, killed: set[int]) -> list[str]:
    """What is otherwise than it has to be. Processes that were killed may have compiled what they could not keep."""
    found, held, compilers = [], set(), defaultdict(list)
    if kept != kernels:
        found.append(f"{kept} of {kernels} kernels are in the cache")
    for entry in journal:
        if entry.what == HELD:
            held.add(entry.number)
            continue
        before = compilers[entry.number]
        if entry.number in held:
            found.append(f"kernel {entry.number} was compiled again after somebody held it")
        elif not killed.issuperset(before):
            found.append(f"kernel {entry.number} was compiled again, and who had compiled it lived")
        elif entry.process in before:
            found.append(f"kernel {entry.number} was compiled twice by one process")
        before.append(entry.process)
    if missing := [number for number in range(kernels) if number not in compilers]:
        found.append(f"nobody compiled the kernels {missing}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=8, help="of each process")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return Worker(options.worker, options).run()

    chance, begun = random.Random(options.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        journal, killed, ends = Journal(folder / "journal"), set(), []
        running = [start(folder, options, 1000 * index) for index in range(options.processes)]
        for kill in range(options.kills):
            # At a moment at which so many kernels are there: whoever it is, somebody is amid a compilation then.
            wanted = options.kernels * (kill + 1) // (options.kills + 2)
            while len(journal.compiled()) < wanted and any(each.poll() is None for each in running):
                time.sleep(0.001)
            victim = chance.choice(running)
            victim.kill()
            if (end := victim.wait()) == -signal.SIGKILL:
                killed.add(victim.pid)
            else:  # before it could be killed
                ends.append(end)
            running.remove(victim)
            running.append(start(folder, options, 1000 * (options.processes + kill)))
        ends += [each.wait(LIMIT) for each in running]
        Device(0).set_current()
        cache, missed = FileStreamProgramCache(folder / "cache"), Journal(folder / "missed")
        for number in range(options.kernels):
            program(number).compile(logs=Log(missed, number), cache=cache)
        kept = options.kernels - len(missed.entries())
        wrong = differences(journal.entries(), kept, options.kernels, killed)
        wrong += [f"a process ended with {end}" for end in ends if end != 0]
        compilations = len(journal.compiled())
        drafts = len(list((folder / "cache" / "tmp").iterdir()))
    print(
        f"{options.processes} processes of {options.threads} threads, {len(killed)} killed: "
        f"{compilations} compilations of {options.kernels} kernels, {drafts} drafts left, "
        f"{time.monotonic() - begun:.1f} s"
    )
    for each in wrong:
        print(f"wrong: {each}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
