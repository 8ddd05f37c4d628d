"""The cases by CuPy."""

import tempfile
from itertools import pairwise

import cupy
import numpy as np
from cupy.cuda import runtime

from benchmarks.backends import WIDTHS, bursts, timed


class Backend:
    version = cupy.__version__

    def __init__(self, image: bytes) -> None:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(image)
            file.flush()
            module = cupy.RawModule(path=file.name)
            self.nothing, self.dense = module.get_function("nothing"), module.get_function("dense")
        self.x = cupy.zeros(1024, cupy.float32)
        self.layers = [
            (cupy.zeros((outputs, inputs), cupy.float32), cupy.zeros(outputs, cupy.float32))
            for inputs, outputs in pairwise(WIDTHS)
        ]
        cupy.cuda.Device(0).synchronize()

    def _stream(self):
        stream = cupy.cuda.Stream(non_blocking=True)
        stream.use()  # in this thread
        return stream

    def launch(self, index):
        stream, n, a = self._stream(), np.int32(0), np.float32(2)

        def repeat(count, nothing, n, a, x):
            for _ in range(count):
                nothing((1,), (1,), (n, a, x, x))

        return bursts(stream.synchronize, repeat, self.nothing, n, a, self.x)

    def allocate(self, index):
        stream = self._stream()

        def repeat(count, allocate):
            for _ in range(count):
                allocate(65536)

        return bursts(stream.synchronize, repeat, cupy.cuda.alloc)

    def record(self, index):
        stream, event = self._stream(), cupy.cuda.Event(disable_timing=True)

        def repeat(count, event, stream):
            for _ in range(count):
                event.record(stream)

        return bursts(stream.synchronize, repeat, event, stream)

    def worker(self, index):
        stream = self._stream()
        activations = [cupy.zeros(width, cupy.float32) for width in WIDTHS]
        source = cupy.cuda.alloc_pinned_memory(4 * WIDTHS[0])
        target = cupy.cuda.alloc_pinned_memory(4 * WIDTHS[-1])
        steps = [
            (
                ((outputs + 7) // 8,),
                (
                    *map(np.int32, (WIDTHS[layer], outputs, layer < 2)),
                    *self.layers[layer],
                    *activations[layer : layer + 2],
                ),
            )
            for layer, outputs in enumerate(WIDTHS[1:])
        ]

        def request(stream, source, first, dense, steps, last, target):
            to_device, to_host = runtime.memcpyHostToDevice, runtime.memcpyDeviceToHost
            runtime.memcpyAsync(first.data.ptr, source.ptr, 4 * WIDTHS[0], to_device, stream.ptr)
            for grid, arguments in steps:
                dense(grid, (256,), arguments)
            runtime.memcpyAsync(target.ptr, last.data.ptr, 4 * WIDTHS[-1], to_host, stream.ptr)
            stream.synchronize()

        return timed(request, stream, source, activations[0], self.dense, steps, activations[-1], target)
