"""Asks a kernel and its occupancy, and launches what they say."""

import numpy as np
from common import compiled, core, current_device

SOURCE = """
extern "C" __global__ void reverse(int* x, int n) {
    extern __shared__ int shared[];
    int i = threadIdx.x;
    if (i < n) shared[i] = x[i];
    __syncthreads();
    if (i < n) x[i] = shared[n - 1 - i];
}
"""

device = current_device()
stream = device.create_stream()
kernel = compiled(SOURCE).get_kernel("reverse")
assert kernel.num_arguments == 2 and [info.size for info in kernel.arguments_info] == [8, 4]
blocks = kernel.occupancy.max_active_blocks_per_multiprocessor(128, 512)
best = kernel.occupancy.max_potential_block_size(512, 0)
assert blocks >= 1 and best.min_grid_size >= 1 and best.max_block_size >= 100
assert kernel.occupancy.available_dynamic_shared_memory_per_block(1, 128) >= 512
buffer = core.LegacyPinnedMemoryResource().allocate(4 * 100)
x = np.from_dlpack(buffer).view(np.int32)
x[:] = np.arange(100)
core.launch(stream, core.LaunchConfig(grid=1, block=128, shmem_size=512), kernel, buffer, np.int32(100))
stream.sync()
assert (x == np.arange(100)[::-1]).all()
