"""The model on the device, shared by all threads, and the worker that one thread is."""

import itertools
import time
from dataclasses import dataclass

import numpy as np

from examples.inference.model import FOLDER, LAYERS
from ftcuda import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions

BLOCK = 256
REPORT = 100  # requests between two reports of a thread's progress


@dataclass
class Layer:
    weights: object
    bias: object
    inputs: int
    outputs: int


class SharedModel:
    """Kernels and weights: made once, used by every thread, never locked."""

    def __init__(self, device: Device, weights) -> None:
        self.device = device
        source = (FOLDER / "kernels.cu").read_text()
        program = Program(source, "c++", ProgramOptions(name="kernels.cu"))
        code = program.compile(name_expressions=("dense<true>", "dense<false>"))
        self.normalise = code.get_kernel("normalise")
        self.hidden = code.get_kernel("dense<true>")
        self.last = code.get_kernel("dense<false>")
        self.argmax = code.get_kernel("argmax")
        stream = device.create_stream()
        self.layers = [self._upload(matrix, bias, stream) for matrix, bias in weights]
        stream.sync()

    def _upload(self, matrix: np.ndarray, bias: np.ndarray, stream) -> Layer:
        outputs, inputs = matrix.shape
        return Layer(self._copy(matrix, stream), self._copy(bias, stream), inputs, outputs)

    def _copy(self, array: np.ndarray, stream):
        staging = LegacyPinnedMemoryResource().allocate(array.nbytes)
        view = np.frombuffer(staging, np.float32)
        view[:] = array.ravel()
        buffer = self.device.allocate(array.nbytes, stream=stream)
        buffer.copy_from(staging, stream=stream)
        return buffer

    def steps(self, images: int, pixels, activations, digits):
        """The launches that infer some images: each time a kernel, its configuration and its arguments.

        Parameters
        ----------
        images : int
            How many there are.
        pixels, activations, digits : buffers or arrays on the device
            What is read, one memory for each of `LAYERS`, of which the last gets the logits, and what gets the digits.
        """
        first = LaunchConfig(grid=images, block=LAYERS[0])
        yield self.normalise, first, (pixels, activations[0], images * LAYERS[0])
        for index, layer in enumerate(self.layers):
            kernel = self.last if index == len(self.layers) - 1 else self.hidden
            config = LaunchConfig(grid=((32 * layer.outputs + BLOCK - 1) // BLOCK, images), block=BLOCK)
            pair = activations[index : index + 2]
            yield kernel, config, (layer.weights, layer.bias, *pair, layer.inputs, layer.outputs)
        yield self.argmax, LaunchConfig(grid=images, block=32), (activations[-1], LAYERS[-1], digits)


class Worker:
    """One thread's own things: a stream, pinned staging, activations, and a graph if that is what it launches."""

    def __init__(self, model: SharedModel, *, with_graph: bool = False) -> None:
        self.model = model
        self.stream = model.device.create_stream()
        pinned = LegacyPinnedMemoryResource()
        self.input = pinned.allocate(4 * LAYERS[0])
        self.output = pinned.allocate(4 * LAYERS[-1])
        self.digit = pinned.allocate(4)
        self.pixels = np.frombuffer(self.input, np.float32)
        self.logits = np.frombuffer(self.output, np.float32)
        self.answer = np.frombuffer(self.digit, np.int32)
        allocate = model.device.allocate
        self.device_pixels = allocate(4 * LAYERS[0], stream=self.stream)
        self.activations = [allocate(4 * width, stream=self.stream) for width in LAYERS]
        self.device_digit = allocate(4, stream=self.stream)
        steps = model.steps(1, self.device_pixels, self.activations, self.device_digit)  # their arguments never change
        self.launches = [kernel.bind(config, *arguments).launch for kernel, config, arguments in steps]
        self.submit = self._capture().launch if with_graph else self._submit

    def _submit(self, stream) -> None:
        """One inference: of `pixels`, to `answer` and `logits`."""
        self.device_pixels.copy_from(self.input, stream=stream)
        for launch in self.launches:
            launch(stream)
        self.activations[-1].copy_to(self.output, stream=stream)
        self.device_digit.copy_to(self.digit, stream=stream)

    def _capture(self):
        """The same as a graph, which is one submission. A builder takes what a stream takes."""
        builder = self.model.device.create_graph_builder().begin_building()
        self._submit(builder)
        return builder.end_building().complete()

    def infer(self, image: np.ndarray) -> tuple[int, np.ndarray]:
        """Returns the digit and the logits (10,), which the next call overwrites."""
        self.pixels[:] = image
        self.submit(self.stream)
        self.stream.sync()
        return int(self.answer[0]), self.logits


@dataclass
class Served:
    """What one thread did: the requests it took, their answers and how long each took."""

    requests: list[int]
    digits: list[int]
    seconds: list[float]
    worst_logit: float


def serve(
    worker: Worker, images: np.ndarray, reference: np.ndarray, counter: itertools.count, total: int, progress
) -> Served:
    """Takes requests from `counter`, which all threads share, until `total` were taken."""
    served = Served([], [], [], 0.0)
    while (request := next(counter)) < total:
        image = request % len(images)
        begin = time.perf_counter()
        digit, logits = worker.infer(images[image])
        served.seconds.append(time.perf_counter() - begin)
        served.requests.append(request)
        served.digits.append(digit)
        served.worst_logit = max(served.worst_logit, float(np.abs(logits - reference[image]).max()))
        if len(served.requests) % REPORT == 0:
            progress(REPORT)
    progress(len(served.requests) % REPORT)
    return served
