"""The first use of ftcuda, of the driver and of NVRTC from many threads of a new process."""

from stress.hazard import ProcessHazard


class FirstUse(ProcessHazard):
    """Everything that happens once happens once."""

    program = """
import ftcuda
from ftcuda.testing import together
def work(index):
    stream = ftcuda.Device(0).create_stream()
    buffer = ftcuda.Device(0).allocate(100, stream=stream)
    target = "ptx" if ftcuda.driver_info().simulated else "cubin"
    code = ftcuda.Program('extern "C" __global__ void k(int* p) { *p = 1; }', "c++").compile(target)
    ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, block=1), code.get_kernel("k"), buffer)
    stream.sync()
    return ftcuda.driver_info().path, id(ftcuda.Device(0).default_stream.handle)
assert len({path for path, _ in together(THREADS, work)}) == 1
"""
