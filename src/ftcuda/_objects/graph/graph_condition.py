"""What conditional nodes of graphs decide by."""

from typing import Never, SupportsIndex

from ftcuda._objects.support.handles import OwnHandle
from ftcuda._objects.support.options import integer

MOST_BRANCHES = 4096  # of one node or split; a builder has a stream for each


class GraphCondition(OwnHandle):
    """A number by which a conditional node decides what it runs. Made by :meth:`GraphBuilder.create_condition`.

    It is given to kernels as an argument of type ``cudaGraphConditionalHandle``. They set it by
    ``cudaGraphSetConditional(handle, value)``, in a launch of the graph that it was made for.
    """

    __slots__ = ("__weakref__", "_handle")

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


def checked_condition(condition: object) -> int:
    """Returns the handle of a condition."""
    if not isinstance(condition, GraphCondition):
        raise TypeError(f"condition must be a GraphCondition, not {type(condition).__name__}")
    return condition.handle


def checked_default(value: SupportsIndex) -> int:
    """Returns what a condition is when a launch begins."""
    number = integer(value, "default_value")
    if not 0 <= number < 2**32:
        raise ValueError(f"default_value must be from 0 to 2**32 - 1, not {number}")
    return number


def checked_count(count: SupportsIndex, least: int) -> int:
    """Returns how many branches there are to be."""
    number = integer(count, "count")
    if not least <= number <= MOST_BRANCHES:
        raise ValueError(f"count must be from {least} to {MOST_BRANCHES}, not {number}")
    return number
