"""What comes before or behind a node, as a set."""

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any

from ftcuda.errors import ClosedError


class AdjacentNodes(MutableSet):
    """The nodes that a node comes behind, or that come behind it. Changes are made in the graph at once.

    Each of its methods is one question or one change. Thread safety: atomic.
    """

    __slots__ = ("_forward", "_node")

    def __init__(self, node: Any, forward: bool) -> None:
        self._node, self._forward = node, forward

    @classmethod
    def _from_iterable(cls, iterable: Iterable[Any]) -> set[Any]:
        return set(iterable)  # what operators make is no part of a graph

    def __contains__(self, node: object) -> bool:
        return node in self._node._adjacent(self._forward)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._node._adjacent(self._forward))

    def __len__(self) -> int:
        return len(self._node._adjacent(self._forward))

    def add(self, value: Any) -> None:
        """Adds an edge, if there is none."""
        self._node._connect(self._forward, (value,))

    def discard(self, value: Any) -> None:
        """Takes the edge away, if there is one."""
        if value in self:
            self._node._disconnect(self._forward, (value,))

    def update(self, *others: Iterable[Any]) -> None:
        """Adds edges for all of these nodes, or for none of them."""
        self._node._connect(self._forward, [node for each in others for node in each])

    def clear(self) -> None:
        """Takes all edges away."""
        self._node._disconnect(self._forward, list(self))

    def assign(self, value: Iterable[Any]) -> None:
        """Makes these nodes the only ones."""
        wanted = list(value)
        self._node._connect(self._forward, wanted)
        self._node._disconnect(self._forward, list(set(self).difference(wanted)))

    def __ior__(self, other: Iterable[Any]) -> "AdjacentNodes":  # type: ignore[override, misc]
        self.update(other)
        return self

    def __isub__(self, other: Iterable[Any]) -> "AdjacentNodes":  # type: ignore[override, misc]
        self._node._disconnect(self._forward, list(set(self).intersection(other)))
        return self

    def __repr__(self) -> str:
        try:
            return f"{{{', '.join(map(repr, self))}}}"
        except ClosedError:
            return f"<nodes {'behind' if self._forward else 'before'} a destroyed node>"
