"""The digits model of the inference example behind a batcher."""

from examples.inference.model import LAYERS, load_weights
from examples.inference.worker import SharedModel
from ftcuda import Device, launch
from ftcuda.serving import Batch, Batcher

BATCH_SIZES = (1, 4, 16)


class Digits:
    """What the batcher captures: the model's kernels, for each size of a batch."""

    def __init__(self, device: Device) -> None:
        self._model = SharedModel(device, load_weights())
        self._stream = device.create_stream()

    def forward(self, batch: Batch) -> None:
        """Submits the work for `batch.size` images. The graph that comes of it keeps the memory between the layers."""
        between = [batch.device.allocate(4 * batch.size * width, stream=self._stream) for width in LAYERS[:-1]]
        self._stream.sync()
        activations = [*between, batch["logits"]]
        for kernel, config, arguments in self._model.steps(batch.size, batch["pixels"], activations, batch["digit"]):
            launch(batch.stream, config, kernel, *arguments)


def make_batcher(device: Device, **options) -> Batcher:
    """Makes the batcher, with further options of `Batcher`. A row has `pixels`; an answer `digit` and `logits`."""
    inputs = {"pixels": ("float32", LAYERS[:1])}
    outputs = {"digit": ("int32", ()), "logits": ("float32", LAYERS[-1:])}
    options = {"batch_sizes": BATCH_SIZES, "progress": False, **options}
    return Batcher(Digits(device).forward, inputs=inputs, outputs=outputs, device=device, **options)
