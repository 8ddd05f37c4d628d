"""Kernels for the driver under test. Programs of tests that run in processes of their own import this, and not pytest."""

import re

import ftcuda
from ftcuda import ObjectCode, Program, ProgramOptions
from ftcuda.utils import InMemoryProgramCache

IS_SIMULATED = ftcuda.driver_info().simulated

# PTX versions by driver version: PTX ISA, release history.
PTX_VERSIONS = {"11.2": "7.2", "11.8": "7.8", "12.0": "8.0", "12.4": "8.4", "12.9": "8.8", "13.0": "9.0", "13.5": "9.5"}
CACHE = InMemoryProgramCache()  # what all threads of a test want is compiled once


def compile_code(source, *name_expressions, target="ptx" if IS_SIMULATED else "cubin", **options):
    """Compiles for the driver under test. A simulated driver older than NVRTC is given its own PTX version: the kernels here
    use nothing newer."""
    program = Program(source, "c++", ProgramOptions(**options))
    code = program.compile(target, name_expressions=name_expressions, cache=CACHE)
    if not IS_SIMULATED:
        return code
    text = code.code.decode()
    supported = PTX_VERSIONS[ftcuda.driver_info().version]
    written = re.search(r"\.version (\d+\.\d+)", text).group(1)
    if float(written) <= float(supported):
        return code
    text = text.replace(f".version {written}", f".version {supported}", 1)
    return ObjectCode.from_ptx(text.encode(), symbol_mapping=code.symbol_mapping)


SAXPY = r"""
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void empty() {}
extern "C" __global__ void increment(int* counter) { atomicAdd(counter, 1); }
extern "C" __global__ void append(int* log, int value) { log[0] += 1; log[log[0]] = value; }
extern "C" __global__ void store(int* place, int value) { *place = value; }
extern "C" __global__ void hold(const volatile int* gate) { while (*gate == 0); }
"""
