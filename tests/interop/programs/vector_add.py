"""Adds two vectors."""

import numpy as np
from common import compiled, core, current_device

SOURCE = """
extern "C" __global__ void add(const float* a, const float* b, float* c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""
COUNT = 1000

device = current_device()
stream = device.create_stream()
kernel = compiled(SOURCE).get_kernel("add")
host = core.LegacyPinnedMemoryResource()
buffers = [host.allocate(4 * COUNT) for _ in range(3)]
a, b, c = (np.from_dlpack(buffer).view(np.float32) for buffer in buffers)
a[:], b[:], c[:] = np.arange(COUNT), 2 * np.arange(COUNT), 0
core.launch(stream, core.LaunchConfig(grid=(COUNT + 255) // 256, block=256), kernel, *buffers, np.uint32(COUNT))
stream.sync()
assert (c == 3 * np.arange(COUNT)).all()
