"""Two streams that work at once on halves of an array; a third one waits for both by events and combines the halves."""

import numpy as np
from cuda.core import Device, EventOptions, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = """
extern "C" __global__ void scale(float* x, float factor, int count) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) x[index] *= factor;
}
extern "C" __global__ void combine(const float* left, const float* right, float* out, int count) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) out[index] = left[index] - right[index];
}
"""
COUNT, BLOCK = 5_000, 128

device = Device()
device.set_current()
code = Program(SOURCE, "c++", ProgramOptions(std="c++17", arch=f"sm_{device.arch}")).compile("cubin")
scale, combine = code.get_kernel("scale"), code.get_kernel("combine")
config = LaunchConfig(grid=-(-COUNT // BLOCK), block=BLOCK)
pinned = LegacyPinnedMemoryResource()
staging = [pinned.allocate(4 * COUNT) for _ in range(3)]
left, right, out = (np.from_dlpack(buffer).view(np.float32) for buffer in staging)
left[:], right[:], out[:] = np.arange(COUNT), np.arange(COUNT)[::-1], 0
expected = left * np.float32(3) - right * np.float32(5)

streams = [device.create_stream() for _ in range(3)]
on_device = [device.allocate(4 * COUNT, stream=stream) for stream in streams]
timed = EventOptions(timing_enabled=True)
begin = streams[2].record(options=timed)
for stream, buffer, host, factor in zip(streams[:2], on_device[:2], staging[:2], (3, 5), strict=True):
    buffer.copy_from(host, stream=stream)
    launch(stream, config, scale, buffer, np.float32(factor), np.int32(COUNT))
    streams[2].wait(stream.record())
launch(streams[2], config, combine, *on_device, np.int32(COUNT))
on_device[2].copy_to(staging[2], stream=streams[2])
end = streams[2].record(options=timed)
end.sync()
assert np.array_equal(out, expected), "the halves are combined wrongly"
assert end.is_done and end - begin > 0
for buffer in on_device:
    buffer.close(streams[2])
streams[2].sync()
print(f"multi_stream: {COUNT} elements of two streams")
