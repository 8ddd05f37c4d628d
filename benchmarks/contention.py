"""``python -m benchmarks.contention``: what a launch costs more for each thing that its thread shares with others.

Each thread launches into a stream of its own. In the first row it made all else itself too; in each of the others one
thing is the same in all threads: the maker of the streams, or the number among the arguments. What the driver's own
locks cost is in every row.
"""

import argparse
import statistics
import sys

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.backends import bursts
from benchmarks.measure import measure
from ftcuda import Device, LaunchConfig, Program, driver_info, launch, make_immortal

SOURCE = 'extern "C" __global__ void nothing(int, float, const float*, float*) {}'
MOST_THREADS = 64


class Things:
    """What a launch takes beside its stream."""

    def __init__(self, code) -> None:
        self.config, self.kernel = LaunchConfig(grid=1, block=1), code.get_kernel("nothing")
        stream = Device(0).create_stream()
        self.buffer = Device(0).allocate(4096, stream=stream)
        stream.sync()


class Sharing:
    """One case each: what makes the loop of a thread."""

    def __init__(self) -> None:
        self._code = Program(SOURCE, "c++").compile()
        self._all, self._immortal = Things(self._code), Things(self._code)
        make_immortal(self._immortal.config, self._immortal.kernel, self._immortal.buffer)
        self._bound = self._all.kernel.bind(self._all.config, 0, 2.0, self._all.buffer, self._all.buffer)
        self._streams = [Device(0).create_stream() for _ in range(MOST_THREADS)]
        self._number = float("2")

    def nothing(self, index):
        return self._launches(Things(self._code))

    def configuration(self, index):
        things = Things(self._code)
        things.config = self._all.config
        return self._launches(things)

    def kernel(self, index):
        things = Things(self._code)
        things.kernel = self._all.kernel
        return self._launches(things)

    def buffer(self, index):
        things = Things(self._code)
        things.buffer = self._all.buffer
        return self._launches(things)

    def maker_of_streams(self, index):
        return self._launches(Things(self._code), self._streams[index])

    def number(self, index):
        return self._launches(Things(self._code), number=self._number)

    def all(self, index):
        return self._launches(self._all, self._streams[index], self._number)

    def all_immortal(self, index):
        return self._launches(self._immortal)

    def bound_launch(self, index):
        stream = Device(0).create_stream()

        def repeat(count, bound, stream):
            for _ in range(count):
                bound.launch(stream)

        return bursts(stream.sync, repeat, self._bound, stream)

    def bound_launch_by_a_method_of_ones_own(self, index):
        stream = Device(0).create_stream()

        def repeat(count, launch, stream):
            for _ in range(count):
                launch(stream)

        return bursts(stream.sync, repeat, self._bound.launch, stream)

    def _launches(self, things, stream=None, number=None):
        stream = stream or Device(0).create_stream()
        number = number or float("2")

        def repeat(count, stream, config, kernel, number, buffer):
            for _ in range(count):
                launch(stream, config, kernel, 0, number, buffer, buffer)

        return bursts(stream.sync, repeat, stream, things.config, things.kernel, number, things.buffer)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contention", description=__doc__)
    parser.add_argument("--threads", default="1,4,16")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--calls", type=int, default=20_000, help="of each thread")
    options = parser.parse_args()
    counts = [int(count) for count in options.threads.split(",")]
    if max(counts) > MOST_THREADS:
        parser.error(f"at most {MOST_THREADS} threads")
    sharing = Sharing()
    cases = [name for name in vars(Sharing) if not name.startswith("_")]
    found: dict[tuple[str, int], list[float]] = {(case, count): [] for case in cases for count in counts}
    turns = [(case, count) for _ in range(options.repeats) for count in counts for case in cases]
    for case, count in track(turns, "measuring", disable=not sys.stdout.isatty()):
        rate = measure(sharing, case, count, options.calls)["rate"]
        found[case, count].append(count / rate * 1e9)
    gil = "enabled" if sys._is_gil_enabled() else "disabled"
    print(f"{Device(0).name}, driver {driver_info().version}, CPython {sys.version.split()[0]}, GIL {gil}")
    print(f"nanoseconds per launch and thread: medians of {options.repeats}, and the fastest")
    table = Table("shared", *(f"{count} threads" for count in counts))
    for case in cases:
        times = [found[case, count] for count in counts]
        cells = [f"{statistics.median(each):,.0f} ({min(each):,.0f})" for each in times]
        table.add_row(case.replace("_", " "), *cells)
    Console(markup=False, emoji=False).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
