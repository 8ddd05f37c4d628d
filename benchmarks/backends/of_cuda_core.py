"""The cases by cuda.core."""

from itertools import pairwise

import cuda.core
import numpy as np

from benchmarks.backends import WIDTHS, bursts, timed

try:
    from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
except ImportError:  # before 1.0
    from cuda.core.experimental import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch


class Backend:
    version = cuda.core.__version__

    def __init__(self, image: bytes) -> None:
        self.device = Device(0)
        self.device.set_current()
        self.code = ObjectCode.from_cubin(image)
        self.nothing, self.dense = self.code.get_kernel("nothing"), self.code.get_kernel("dense")
        self.one, self.pinned = LaunchConfig(grid=1, block=1), LegacyPinnedMemoryResource()
        stream = self.device.create_stream()
        self.x = self.device.allocate(4096, stream=stream)
        self.layers = [
            tuple(self.device.allocate(4 * count, stream=stream) for count in (inputs * outputs, outputs))
            for inputs, outputs in pairwise(WIDTHS)
        ]
        stream.sync()

    def _stream(self):
        device = Device(0)
        device.set_current()
        return device.create_stream()

    def launch(self, index):
        stream, n, a = self._stream(), np.int32(0), np.float32(2)

        def repeat(count, stream, one, nothing, n, a, x):
            for _ in range(count):
                launch(stream, one, nothing, n, a, x, x)

        return bursts(stream.sync, repeat, stream, self.one, self.nothing, n, a, self.x)

    def allocate(self, index):
        stream = self._stream()

        def repeat(count, device, stream):
            for _ in range(count):
                device.allocate(65536, stream=stream).close(stream)

        return bursts(stream.sync, repeat, self.device, stream)

    def record(self, index):
        stream = self._stream()
        event = stream.record()

        def repeat(count, stream, event):
            for _ in range(count):
                stream.record(event)

        return bursts(stream.sync, repeat, stream, event)

    def worker(self, index):
        stream = self._stream()
        activations = [self.device.allocate(4 * width, stream=stream) for width in WIDTHS]
        source = self.pinned.allocate(4 * WIDTHS[0], stream=stream)
        target = self.pinned.allocate(4 * WIDTHS[-1], stream=stream)
        steps = [
            (
                LaunchConfig(grid=(outputs + 7) // 8, block=256),
                (np.int32(WIDTHS[layer]), np.int32(outputs), np.int32(layer < 2), *self.layers[layer]),
                activations[layer : layer + 2],
            )
            for layer, outputs in enumerate(WIDTHS[1:])
        ]

        def request(stream, source, first, dense, steps, last, target):
            source.copy_to(first, stream=stream)
            for config, arguments, pair in steps:
                launch(stream, config, dense, *arguments, *pair)
            last.copy_to(target, stream=stream)
            stream.sync()

        return timed(request, stream, source, activations[0], self.dense, steps, activations[-1], target)
