"""What `forward` is called with."""

from dataclasses import dataclass
from typing import Any

from ftcuda._objects.arrays.view import StridedMemoryView
from ftcuda._objects.device.device import Device
from ftcuda._objects.graph.graph_builder import GraphBuilder
from ftcuda._objects.serving.signature import RowArray
from ftcuda._objects.stream.stream import Stream


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Batch:
    """Rows that are computed at once. ``batch["x"]`` is the array of that name.

    Attributes
    ----------
    size : int
        How many rows there are. Some of them may be nobody's: these are zeros.
    stream : GraphBuilder or Stream
        Where the work is submitted. With ``capture=False`` a stream, else a graph builder that captures it.
    inputs, outputs : dict[str, StridedMemoryView]
        Arrays of ``(size, *shape)`` on the device, which are read and written there.
    device : Device
        The device that computes.
    """

    size: int
    stream: GraphBuilder | Stream
    device: Device
    inputs: dict[str, StridedMemoryView]
    outputs: dict[str, StridedMemoryView]

    def __getitem__(self, name: str) -> StridedMemoryView:
        return self.inputs[name] if name in self.inputs else self.outputs[name]

    def __repr__(self) -> str:
        return f"<Batch of {self.size} rows on {self.device}>"


def views(arrays: tuple[RowArray, ...], buffers: list[Any], size: int) -> dict[str, StridedMemoryView]:
    """The first rows of the memory for batches."""
    return {
        array.name: StridedMemoryView.from_buffer(buffer, (size, *array.shape), dtype=array.dtype)
        for array, buffer in zip(arrays, buffers, strict=True)
    }
