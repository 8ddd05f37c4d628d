"""Kernels that are templates, by their name expressions."""

import numpy as np
from common import compiled, core, current_device

SOURCE = """
template <typename T, int factor> __global__ void scale(T* x, unsigned n) {
    unsigned i = threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""
NAMES = {"scale<float, 3>": np.float32, "scale<int, -2>": np.int32, "scale<double, 5>": np.float64}

device = current_device()
stream = device.create_stream()
code = compiled(SOURCE, tuple(NAMES))
for (name, kind), factor in zip(NAMES.items(), (3, -2, 5), strict=True):
    buffer = core.LegacyPinnedMemoryResource().allocate(100 * np.dtype(kind).itemsize)
    x = np.from_dlpack(buffer).view(kind)
    x[:] = np.arange(100)
    core.launch(stream, core.LaunchConfig(grid=1, block=128), code.get_kernel(name), buffer, np.uint32(100))
    stream.sync()
    assert (x == factor * np.arange(100)).all(), name
