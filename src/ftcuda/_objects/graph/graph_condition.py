"""What conditional nodes of graphs decide by."""

from typing import Never

from ftcuda._objects.support.handles import OwnHandle


class GraphCondition(OwnHandle):
    """A number by which a conditional node decides what it runs. Made by :meth:`GraphBuilder.create_condition`.

    It is given to kernels as an argument of type ``cudaGraphConditionalHandle``. They set it by
    ``cudaGraphSetConditional(handle, value)``, in a launch of the graph that it was made for.
    """

    __slots__ = ("_handle",)

    def __init__(self) -> Never:
        raise TypeError("conditions are made by GraphBuilder.create_condition()")

    @property
    def handle(self) -> int:
        """The ``CUgraphConditionalHandle`` as an integer. Thread safety: atomic."""
        return self._handle

    def __eq__(self, other: object) -> bool:
        return self._handle == other._handle if isinstance(other, GraphCondition) else NotImplemented

    def __hash__(self) -> int:
        return hash((GraphCondition, self._handle))

    def __repr__(self) -> str:
        return f"<GraphCondition {self._handle:#x}>"


def condition_of(handle: int) -> GraphCondition:
    """Returns the condition that the driver made."""
    made = object.__new__(GraphCondition)
    made._handle = handle
    return made
