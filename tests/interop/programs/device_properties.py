"""What a device says of itself, and a kernel that is launched as it allows."""

import numpy as np
from common import compiled, core, current_device

SOURCE = 'extern "C" __global__ void number(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x; }'

device = current_device()
properties = device.properties
capability = device.compute_capability
assert device.device_id == 0 and device.name and len(device.uuid) == 36
assert device.arch == f"{capability.major}{capability.minor}" and (capability.major, capability.minor) >= (5, 0)
assert properties.multiprocessor_count >= 1 and properties.warp_size == 32
assert properties.max_threads_per_block >= 512
assert core.Device(0) == device
threads = properties.warp_size
blocks = min(properties.multiprocessor_count, 16)
stream = device.create_stream()
buffer = core.LegacyPinnedMemoryResource().allocate(4 * threads * blocks)
x = np.from_dlpack(buffer).view(np.int32)
core.launch(stream, core.LaunchConfig(grid=blocks, block=threads), compiled(SOURCE).get_kernel("number"), buffer)
stream.sync()  # Device.sync of cuda.core needs more of a driver than the simulated one has
assert (x == np.repeat(np.arange(blocks), threads)).all()
