"""A kernel fault while other threads use the context."""

from ftcuda.testing.hazard import ProcessHazard


class PoisonedUnderLoad(ProcessHazard):
    """Some thread is told of the fault, then all are told that the context is poisoned; nothing hangs or crashes."""

    oracle = "what every thread is told in the end, and each failure until then"
    program = """
import ftcuda
from ftcuda import *
from ftcuda.testing import together
device = Device(0)
stream = device.create_stream()
code = Program('extern "C" __global__ void k(int* p) { *(volatile int*)64 = 1; }', "c++").compile()
kernel = code.get_kernel("k")
def work(index):
    mine = None
    for turn in range(100000):
        try:
            mine = mine or device.create_stream()
            if index == 0 and turn == 20: launch(stream, LaunchConfig(grid=1, block=1), kernel, 0)
            buffer = device.allocate(64, stream=mine)
            buffer.fill(1, stream=mine)
            buffer.close()
            mine.record().close()
            mine.sync()
        except ContextPoisonedError: return "poisoned"
        except CUDAError as error: assert error.code == 700, error
        except CUDAWarning as warning: assert "ILLEGAL_ADDRESS" in str(warning), warning  # a free found out first
    return "never told"
assert set(together(THREADS, work)) == {"poisoned"}
"""
