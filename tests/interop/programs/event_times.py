"""Measures a kernel with two events."""

import numpy as np
from common import compiled, core, current_device

SOURCE = 'extern "C" __global__ void square(double* x) { int i = threadIdx.x; x[i] *= x[i]; }'

device = current_device()
stream = device.create_stream()
kernel = compiled(SOURCE).get_kernel("square")
buffer = core.LegacyPinnedMemoryResource().allocate(8 * 64)
x = np.from_dlpack(buffer).view(np.float64)
x[:] = np.arange(64)
timed = core.EventOptions(timing_enabled=True)
start = stream.record(options=timed)
core.launch(stream, core.LaunchConfig(grid=1, block=64), kernel, buffer)
end = device.create_event(options=timed)
stream.record(end)
end.sync()
assert 0 < end - start < 60_000 and start.is_timing_enabled and end.is_done
assert (x == np.arange(64.0) ** 2).all()
untimed = stream.record()
stream.sync()
try:
    _ = untimed - start
except RuntimeError:
    pass
else:
    raise AssertionError("an event without timing gave a time")
