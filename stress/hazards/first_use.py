"""The first use of ftcuda, of the driver and of NVRTC from many threads of a new process."""

from ftcuda.testing.hazard import ProcessHazard


class FirstUse(ProcessHazard):
    """Everything that happens once happens once."""

    oracle = "what each thread's kernel wrote; one driver, and one default stream, for all threads"
    program = """
import numpy as np
import ftcuda
from ftcuda.testing import together
def work(index):
    stream = ftcuda.Device(0).create_stream()
    buffer, host = ftcuda.Device(0).allocate(4, stream=stream), ftcuda.LegacyPinnedMemoryResource().allocate(4)
    code = ftcuda.Program('extern "C" __global__ void k(int* p) { *p = 1; }', "c++").compile()
    ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, block=1), code.get_kernel("k"), buffer)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    assert np.frombuffer(host, np.int32)[0] == 1
    return ftcuda.driver_info().path, ftcuda.Device(0).default_stream.handle
assert len(set(together(THREADS, work))) == 1
"""
