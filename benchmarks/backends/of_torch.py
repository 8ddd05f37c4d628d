"""The cases by PyTorch."""

from itertools import pairwise

import torch

from benchmarks.backends import WIDTHS, bursts, timed


class Backend:
    version = torch.__version__

    def __init__(self, image: bytes) -> None:
        layers = []
        for inputs, outputs in pairwise(WIDTHS):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers[:-1]).cuda().eval()

    def _stream(self):
        stream = torch.cuda.Stream()
        torch.cuda.set_stream(stream)  # in this thread
        return stream

    def allocate(self, index):
        stream = self._stream()

        def repeat(count):
            for _ in range(count):
                torch.empty(65536, dtype=torch.uint8, device="cuda")

        return bursts(stream.synchronize, repeat)

    def record(self, index):
        stream, event = self._stream(), torch.cuda.Event()

        def repeat(count, event, stream):
            for _ in range(count):
                event.record(stream)

        return bursts(stream.synchronize, repeat, event, stream)

    def worker(self, index):
        stream = self._stream()
        source, target = torch.zeros(1, WIDTHS[0]).pin_memory(), torch.zeros(1, WIDTHS[-1]).pin_memory()

        @torch.inference_mode()
        def request(model, source, target, stream):
            target.copy_(model(source.to("cuda", non_blocking=True)), non_blocking=True)
            stream.synchronize()

        return timed(request, self.model, source, target, stream)
