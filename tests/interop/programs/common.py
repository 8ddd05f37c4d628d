"""What differs between the two libraries and the machines that the programs run on, and nothing else."""

import importlib
import os
import re

import numpy as np

NAME = os.environ.get("FTCUDA_PROGRAM_CORE", "ftcuda")  # or cuda.core
core = importlib.import_module(NAME)
utils = importlib.import_module(f"{NAME}.utils")
graph = importlib.import_module(f"{NAME}.graph")

CODE_TYPE = "ptx"  # what is loaded everywhere


def compiled(source, name_expressions=()):
    """Returns the code of a CUDA C++ source, for the current device."""
    made = core.Program(source, "c++", core.ProgramOptions(std="c++17", arch="compute_80")).compile(
        CODE_TYPE, name_expressions=name_expressions
    )
    newest = os.environ.get("FTCUDA_PROGRAM_PTX")
    if newest is None:
        return made
    # For drivers that are older than the compiler: there is nothing newer in these programs.
    text = re.sub(rb"\.version .*", b".version " + newest.encode(), bytes(made.code))
    return core.ObjectCode.from_ptx(text, symbol_mapping=made.symbol_mapping)


def current_device():
    device = core.Device()
    device.set_current()
    return device


SOURCE = """
extern "C" __global__ void append(int* log, int value) { int at = ++log[0]; log[at] = value; }
extern "C" __global__ void put(int* place, int value) { *place = value; }
extern "C" __global__ void twice(int* x, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) x[at] *= 2;
}
extern "C" __global__ void nothing() {}
"""


class Bench:
    """What programs with graphs begin with: a device, a stream, kernels, and pinned memory with a view of it."""

    def __init__(self, count=16):
        self.device = current_device()
        self.stream = self.device.create_stream()
        code = compiled(SOURCE)
        self.append, self.put, self.twice, self.nothing = (
            code.get_kernel(name) for name in ("append", "put", "twice", "nothing")
        )
        self.one = core.LaunchConfig(grid=1, block=1)
        self.memory, self.view = self.words(count)

    def words(self, count):
        """Returns pinned memory of so many ints, all 0, and a view of it."""
        memory = core.LegacyPinnedMemoryResource().allocate(4 * count)
        view = np.from_dlpack(memory).view(np.int32)
        view[:] = 0
        return memory, view

    def run(self, graph, times=1):
        """Launches a graph, and waits."""
        for _ in range(times):
            graph.launch(self.stream)
        self.stream.sync()

    def written(self):
        """What `append` wrote; the next call begins anew."""
        found = self.view[1 : self.view[0] + 1].tolist()
        self.view[:] = 0
        return found
