"""Adds two vectors on the device, with cuda.core alone: memory of the device's pool, copies through pinned memory."""

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = """
extern "C" __global__ void add(const float* a, const float* b, float* sum, int count) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) sum[index] = a[index] + b[index];
}
"""
COUNT, BLOCK = 10_000, 256

device = Device()
device.set_current()
stream = device.create_stream()
kernel = Program(SOURCE, "c++", ProgramOptions(std="c++17", arch=f"sm_{device.arch}")).compile("cubin").get_kernel("add")
pinned = LegacyPinnedMemoryResource()
staging = [pinned.allocate(4 * COUNT) for _ in range(3)]
a, b, total = (np.from_dlpack(buffer).view(np.float32) for buffer in staging)
a[:] = np.arange(COUNT)
b[:] = np.sqrt(np.arange(COUNT))
total[:] = -1
on_device = [device.allocate(4 * COUNT, stream=stream) for _ in range(3)]
for host, buffer in zip(staging[:2], on_device[:2], strict=True):
    buffer.copy_from(host, stream=stream)
launch(stream, LaunchConfig(grid=-(-COUNT // BLOCK), block=BLOCK), kernel, *on_device, np.int32(COUNT))
on_device[2].copy_to(staging[2], stream=stream)
stream.sync()
assert np.array_equal(total, a + b), "the sums are wrong"
for buffer in on_device:
    buffer.close(stream)
stream.sync()
print(f"vector_add: {COUNT} sums, the last is {total[-1]:.6g}")
