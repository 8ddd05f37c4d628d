"""Two streams: the second waits for an event of the first, and the first for the second stream."""

import numpy as np
from common import compiled, core, current_device

SOURCE = """
extern "C" __global__ void twice_and_add(int* x, int amount) { x[threadIdx.x] = 2 * x[threadIdx.x] + amount; }
"""

device = current_device()
first, second = device.create_stream(), device.create_stream(options=core.StreamOptions(nonblocking=True))
kernel = compiled(SOURCE).get_kernel("twice_and_add")
buffer = core.LegacyPinnedMemoryResource().allocate(4 * 32)
x = np.from_dlpack(buffer).view(np.int32)
x[:] = np.arange(32)
config = core.LaunchConfig(grid=1, block=32)
core.launch(first, config, kernel, buffer, np.int32(1))
event = first.record()
second.wait(event)
core.launch(second, config, kernel, buffer, np.int32(10))
first.wait(second)
core.launch(first, config, kernel, buffer, np.int32(100))
first.sync()
assert event.is_done and (x == 2 * (2 * (2 * np.arange(32) + 1) + 10) + 100).all()
assert first != second and second.is_nonblocking and int(first.handle) != int(second.handle)
second.close()
