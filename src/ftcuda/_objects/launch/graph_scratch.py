"""Memory between the kernels of a graph."""

from typing import Never, final

from ftcuda._objects.memory.buffer import Buffer


@final
class GraphScratch:
    """Memory that each executable of a graph has for itself. Made by :meth:`GraphBuilder.scratch`.

    It has no address: that is another one in each executable.
    """

    __slots__ = ("_builder", "_captured")
    _builder: object
    _captured: Buffer  # what the first executable has

    def __init__(self) -> Never:
        raise TypeError("scratch memory is made by GraphBuilder.scratch()")

    def __init_subclass__(cls) -> None:
        raise TypeError("GraphScratch has no subclasses")

    @property
    def size(self) -> int:
        """Bytes. Thread safety: atomic."""
        return self._captured.size

    def __repr__(self) -> str:
        return f"<GraphScratch of {self.size} bytes for {self._builder!r}>"


def scratch_of(builder: object, captured: Buffer) -> GraphScratch:
    """Returns what stands for `captured` in launches that a builder captures."""
    made = object.__new__(GraphScratch)
    made._builder = builder
    made._captured = captured
    return made
