"""saxpy in a loop with a stride of the grid, on device memory, with copies in and out."""

import numpy as np
from common import compiled, core, current_device

SOURCE = """
extern "C" __global__ void saxpy(unsigned long long n, float a, const float* x, float* y) {
    unsigned long long stride = blockDim.x * gridDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] += a * x[i];
}
"""
COUNT = 5000

device = current_device()
stream = device.create_stream()
kernel = compiled(SOURCE).get_kernel("saxpy")
pinned = core.LegacyPinnedMemoryResource()
host_x, host_y = (pinned.allocate(4 * COUNT) for _ in range(2))
x, y = (np.from_dlpack(buffer).view(np.float32) for buffer in (host_x, host_y))
x[:], y[:] = np.arange(COUNT), 1
device_x, device_y = (device.allocate(4 * COUNT, stream=stream) for _ in range(2))
device_x.copy_from(host_x, stream=stream)
device_y.copy_from(host_y, stream=stream)
config = core.LaunchConfig(grid=4, block=128)
core.launch(stream, config, kernel, np.uint64(COUNT), np.float32(2), device_x, device_y)
device_y.copy_to(host_y, stream=stream)
stream.sync()
assert (y == 2 * np.arange(COUNT) + 1).all()
device_x.close(stream)
device_y.close(stream)
