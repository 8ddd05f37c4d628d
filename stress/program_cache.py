"""``python -m stress.program_cache``: threads of many processes compile the same kernels through one folder.

Each kernel must be compiled once, and every thread must have the right one, which it launches. Meanwhile processes are
killed at random, and others take their place: what one had compiled and not kept is compiled once more.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, launch
from ftcuda.utils import FileStreamProgramCache

LIMIT = 300  # seconds for a process
ONE = LaunchConfig(grid=1, block=1)


def program(number: int) -> Program:
    """Writes a number of its own."""
    return Program(f'extern "C" __global__ void own(int* place) {{ *place = {1000 + number}; }}', "c++")


class Compiled:
    """What `compile` tells of a compilation: it is written down at once, since the process may be killed."""

    def __init__(self, journal: Path, number: int) -> None:
        self._journal, self._line = journal, f"{number}\n".encode()

    def write(self, text: str) -> None:
        descriptor = os.open(self._journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, self._line)
        os.close(descriptor)


class Worker:
    """A process: each of its threads wants every kernel, in an order of its own."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._device, self._options, self._journal = Device(0), options, folder / "journal"
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
                code = program(number).compile(logs=Compiled(self._journal, number), cache=self._cache)
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


def differences(compiled: Counter[int], kept: int, options: argparse.Namespace, kills: int) -> list[str]:
    """What is otherwise than it has to be."""
    found = []
    if kept != options.kernels:
        found.append(f"{kept} of {options.kernels} kernels are in the cache")
    if missing := [number for number in range(options.kernels) if number not in compiled]:
        found.append(f"nobody compiled the kernels {missing}")
    if (again := compiled.total() - len(compiled)) > kills:
        found.append(f"{again} compilations were of kernels that had been compiled, and {kills} processes were killed")
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
        journal = folder / "journal"
        running = [start(folder, options, 1000 * index) for index in range(options.processes)]
        for kill in range(options.kills):
            # At a moment at which so many kernels are there: whoever it is, somebody is amid a compilation then.
            wanted = options.kernels * (kill + 1) // (options.kills + 2)
            while journal_of(journal).total() < wanted and any(each.poll() is None for each in running):
                time.sleep(0.001)
            victim = chance.choice(running)
            victim.kill()
            victim.wait()
            running.remove(victim)
            running.append(start(folder, options, 1000 * (options.processes + kill)))
        ends = [each.wait(LIMIT) for each in running]
        compiled = journal_of(journal)
        Device(0).set_current()
        cache, missed = FileStreamProgramCache(folder / "cache"), folder / "missed"
        for number in range(options.kernels):
            program(number).compile(logs=Compiled(missed, number), cache=cache)
        kept = options.kernels - len(journal_of(missed))
        wrong = differences(compiled, kept, options, options.kills)
        wrong += [f"a process ended with {end}" for end in ends if end != 0]
        drafts = len(list((folder / "cache" / "tmp").iterdir()))
    print(
        f"{options.processes} processes of {options.threads} threads, {options.kills} killed: "
        f"{compiled.total()} compilations of {len(compiled)} kernels, {drafts} drafts left, "
        f"{time.monotonic() - begun:.1f} s"
    )
    for each in wrong:
        print(f"wrong: {each}")
    return bool(wrong)


def journal_of(path: Path) -> Counter[int]:
    """How often each kernel was compiled."""
    try:
        return Counter(map(int, path.read_text().split()))
    except FileNotFoundError:
        return Counter()


if __name__ == "__main__":
    sys.exit(main())
