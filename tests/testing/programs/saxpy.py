"""a*x + y with one template for two types, whose kernels are found by name expressions, and with grids of two sizes."""

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = """
template <typename T>
__global__ void saxpy(const T a, const T* x, const T* y, T* out, size_t count) {
    const size_t threads = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) out[i] = a * x[i] + y[i];
}
"""

device = Device()
device.set_current()
stream = device.create_stream()
names = {np.float32: "saxpy<float>", np.float64: "saxpy<double>"}
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
code = Program(SOURCE, "c++", options=options).compile("cubin", name_expressions=tuple(names.values()))
pinned = LegacyPinnedMemoryResource()
random = np.random.default_rng(5)
for dtype, name in names.items():
    kernel = code.get_kernel(name)
    for count, grid in (1000, 4), (4097, 3):  # the second: a thread takes several elements, and the last turn is not full
        buffers = [pinned.allocate(np.dtype(dtype).itemsize * count) for _ in range(3)]
        x, y, out = (np.from_dlpack(buffer).view(dtype) for buffer in buffers)
        x[:], y[:], out[:] = random.random(count), random.random(count), np.nan
        launch(stream, LaunchConfig(grid=grid, block=128), kernel, dtype(2.5), *buffers, np.uint64(count))
        stream.sync()
        # The device rounds once where the host rounds twice.
        np.testing.assert_allclose(out, dtype(2.5) * x + y, rtol=4 * np.finfo(dtype).eps)
        print(f"{name}: {count} elements")
