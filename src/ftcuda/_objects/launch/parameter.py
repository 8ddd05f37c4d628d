"""Arguments of a captured launch that have a name."""

from dataclasses import dataclass
from keyword import iskeyword


@dataclass(frozen=True, slots=True)
class Parameter:
    """In place of an argument of a launch that is captured, or of its configuration.

    Each launch of the graph may have another one, by `name`. Given to :func:`ftcuda.launch` with a `GraphBuilder` as
    the stream. :meth:`Graph.bind` makes what is launched with others. Constant.

    Attributes
    ----------
    name : str
        As of a keyword argument. Several arguments may have one name, also of different launches.
    example : object
        What the argument is where nobody says otherwise. The graph keeps it.
    """

    name: str
    example: object

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a str, not {type(self.name).__name__}")
        if not self.name.isidentifier() or iskeyword(self.name):
            raise ValueError(f"name must be one that a keyword argument may have, not {self.name!r}")
