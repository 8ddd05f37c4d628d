"""``python -m benchmarks.instructions``: instructions of a call on the simulated driver, beside instructions.toml.

Counted by valgrind's callgrind in the calling thread, and apart by library: only ftcuda's own count against the budget,
since those of the interpreter, of the C library and of the driver change with their versions.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ftcuda

HERE = Path(__file__).parent
PACKAGE = Path(ftcuda.__file__).resolve().parent
BUDGET = HERE / "instructions.toml"
CALLS = 200
ALLOWED = 1.03
OURS = "ftcuda"


def load() -> None:
    """What runs under callgrind: prints each operation, runs it once, then CALLS times between two marks."""
    from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, launch
    from ftcuda.graph import Parameter
    from ftcuda.testing import simulation

    device = Device(0)
    stream, other = device.create_stream(), device.create_stream()
    code = Program('extern "C" __global__ void nothing(int, float, const float*, float*) {}', "c++").compile("ptx")
    kernel, one = code.get_kernel("nothing"), LaunchConfig(grid=1, block=1)
    buffer = device.allocate(4096, stream=stream)
    pinned = LegacyPinnedMemoryResource().allocate(256)
    small = device.allocate(256, stream=stream)
    pool = device.memory_resource.upstream
    event, done = device.create_event(), device.create_event()
    bound = kernel.bind(one, 0, 2.0, buffer, buffer).launch

    def graph_of(kernels, *arguments):
        builder = device.create_graph_builder().begin_building()
        for _ in range(kernels):
            launch(builder, one, kernel, *arguments)
        return builder.end_building().complete()

    def rebound(kernels):  # all four arguments of each, which no launch shares with the one before
        named = (Parameter("n", 0), Parameter("a", 2.0), Parameter("x", buffer), Parameter("y", small))
        launch, numbers, buffers = graph_of(kernels, *named).bind().launch, itertools.count(), (buffer, small)

        def call():
            number = next(numbers)
            launch(stream, n=number, a=float(number), x=buffers[number % 2], y=buffers[(number + 1) % 2])

        return call

    graph = graph_of(20, 0, 2.0, buffer, buffer)
    stream.record(done)
    stream.sync()
    operations = {
        "launch": lambda: launch(stream, one, kernel, 0, 2.0, buffer, buffer),
        "launch elsewhere": lambda: launch(other, one, kernel, 0, 2.0, buffer, buffer),
        "bound launch": lambda: bound(stream),
        "graph launch": lambda: graph.launch(stream),
        "rebound launch, 1 kernel": rebound(1),
        "rebound launch, 20 kernels": rebound(20),
        "allocate and close": lambda: device.allocate(65536, stream=stream).close(),
        "allocate from the pool": lambda: pool.allocate(65536, stream=stream).close(),
        "record": lambda: stream.record(event),
        "wait": lambda: other.wait(event),
        "is_done": lambda: done.is_done,
        "copy 256 B": lambda: small.copy_from(pinned, stream=stream),
    }
    for name, call in operations.items():
        print(name)
        with simulation.held_clock():
            call()
            mark()
            for _ in range(CALLS):
                call()
            mark()
        device.sync()


def mark() -> None:
    """A call of the C library that nothing else makes, and before which callgrind writes what it counted."""
    os.getpriority(os.PRIO_PROCESS, 0)


def count(folder: Path) -> dict[str, Counter]:
    """Runs `load` under callgrind; returns instructions per call, by operation and library."""
    command = [
        "valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", "--dump-before=getpriority",
        f"--callgrind-out-file={folder / 'out'}",
        sys.executable, "-c", "from benchmarks.instructions import load; load()",
    ]  # fmt: skip
    environment = {**os.environ, "FTCUDA_DRIVER": "sim", "PYTHONHASHSEED": "0"}
    names = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    # Of the calling thread, which is the first. Odd files end at a mark before calls, even ones at the mark after them.
    return {name: costs(folder / f"out.{2 * number}-01") for number, name in enumerate(names, 1)}


def costs(path: Path) -> Counter:
    """Returns what one call costs, by library, from callgrind's file about CALLS (chapter 'Callgrind Format')."""
    names: dict[str, str] = {}
    found: Counter = Counter()
    current, is_call = "", False
    for line in path.read_text().splitlines():
        if named := re.match(r"c?ob=\((\d+)\)(?: (.*))?", line):
            names.setdefault(named[1], named[2] or "")
            if line.startswith("ob="):
                current = named[1]
        elif line.startswith("calls="):
            is_call = True  # the next line has the cost of what was called
        elif line and line[0] in "0123456789+-*":
            if not is_call:
                found[library(names[current])] += int(line.split()[1])
            is_call = False
    return Counter({name: cost / CALLS for name, cost in found.items()})


def library(path: str) -> str:
    """Returns in which column a library stands."""
    # Whole paths name folders of the machine's: an interpreter may lie in one called ftcuda.
    if Path(path).is_relative_to(PACKAGE):
        return "driver" if "simdriver" in Path(path).name else OURS
    return "interpreter" if "python" in Path(path).name else "system"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--update", action="store_true", help="make what was counted the budget")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counted = count(Path(folder))
    if options.update:
        lines = [f'"{name}" = {by[OURS]:.0f}\n' for name, by in counted.items()]
        BUDGET.write_text("# ftcuda's own instructions in a call, by `ci/instructions.sh --update`.\n" + "".join(lines))
    budget = tomllib.loads(BUDGET.read_text())
    table = Table("operation", OURS, "budget", "interpreter", "system", "driver")
    over = [name for name, by in counted.items() if by[OURS] > ALLOWED * budget[name]]
    for name, by in counted.items():
        figures = (by[OURS], budget[name], by["interpreter"], by["system"], by["driver"])
        table.add_row(name, *(f"{figure:,.0f}" for figure in figures), style="red" if name in over else None)
    Console(markup=False, emoji=False).print(table)
    if over:
        print(f"more than 3 % over the budget: {', '.join(over)}", file=sys.stderr)
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
