"""A kernel's test that needs no GPU."""

import numpy as np

from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, launch

SOURCE = 'extern "C" __global__ void add(const int* x, int* y) { y[threadIdx.x] += x[threadIdx.x]; }'


def test_the_kernel_adds(simulated_driver):
    stream = Device(0).create_stream()
    x, y = (LegacyPinnedMemoryResource().allocate(4 * 100) for _ in range(2))
    np.frombuffer(x, np.int32)[:] = range(100)
    np.frombuffer(y, np.int32)[:] = 1
    launch(stream, LaunchConfig(grid=1, block=100), Program(SOURCE, "c++").compile("ptx").get_kernel("add"), x, y)
    stream.sync()
    assert np.frombuffer(y, np.int32).tolist() == list(range(1, 101))
