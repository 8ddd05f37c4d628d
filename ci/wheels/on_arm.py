"""What a wheel for 64-bit Arm does under QEMU: a kernel in PTX, since there is no NVRTC, from four threads."""

import platform
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import ftcuda
from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch

PTX = b"""
.version 7.0
.target sm_52
.address_size 64
.visible .entry add(.param .u64 x, .param .u32 value)
{
    .reg .u64 %address;
    .reg .u32 %value, %old;
    ld.param.u64 %address, [x];
    ld.param.u32 %value, [value];
    atom.global.add.u32 %old, [%address], %value;
    ret;
}
"""

stream = Device(0).create_stream()
kernel = ObjectCode.from_ptx(PTX).get_kernel("add")
memory = LegacyPinnedMemoryResource().allocate(4)
word = np.frombuffer(memory, np.int32)
word[0] = 0
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda number: launch(stream, LaunchConfig(grid=1, block=1), kernel, memory, number), range(100)))
stream.sync()
assert word[0] == sum(range(100)), word[0]
print(f"ftcuda {ftcuda.__version__}, {platform.machine()}, CPython {platform.python_version()}: 100 launches are right")
