"""PyTorch: the batcher in Python above the same perceptron, and each thread by itself, a row at a time."""

from itertools import pairwise

import torch

from benchmarks.serving.model import Model
from benchmarks.serving.queue_batcher import QueueBackend, QueueBatcher


class Computer:
    """A stream and pinned memory, of one thread."""

    def __init__(self, model, widths, most: int) -> None:
        self._model, self._stream = model, torch.cuda.Stream()
        self._x, self._y = (torch.zeros(most, width).pin_memory() for width in (widths[0], widths[-1]))

    @torch.inference_mode()
    def __call__(self, rows):
        count = len(rows)
        with torch.cuda.stream(self._stream):
            self._x[:count] = torch.from_numpy(rows)
            self._y[:count].copy_(self._model(self._x[:count].to("cuda", non_blocking=True)), non_blocking=True)
            self._stream.synchronize()
        return self._y[:count].numpy()


class Backend(QueueBackend):
    version = torch.__version__
    cases = ("one_by_one", "submit_many", "submit", "call")

    def __init__(self, model: Model, folder, options: dict) -> None:
        self._widths = model.widths
        layers = []
        for (inputs, outputs), (weights, bias) in zip(pairwise(model.widths), model.layers, strict=True):
            layer = torch.nn.Linear(inputs, outputs)
            layer.load_state_dict({"weight": torch.from_numpy(weights), "bias": torch.from_numpy(bias)})
            layers += [layer, torch.nn.ReLU()]
        self._model = torch.nn.Sequential(*layers[:-1]).cuda().eval()
        most = options["batch_sizes"][-1]
        computers = [Computer(self._model, model.widths, most) for _ in range(options["in_flight"])]
        for compute in computers:
            for rows in range(1, most, max(most // 8, 1)):
                compute(model.rows[: max(1, min(rows, len(model.rows)))])
        self._batcher = QueueBatcher(computers, most)

    def of(self, case: str, index: int):
        if case == "one_by_one":
            compute = Computer(self._model, self._widths, 1)
            return lambda row: compute(row[None])[0].copy()
        return super().of(case, index)
