"""Arguments of captured launches that have a name."""

from dataclasses import dataclass
from keyword import iskeyword
from typing import final
from unicodedata import normalize

PARAMETER_BELONGS = "a Parameter is for launch() with a GraphBuilder that builds as the stream"


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """In place of an argument of a launch that is captured, or of its configuration.

    Each launch of the graph may have another one, by `name`. Given to :func:`ftcuda.launch` with a `GraphBuilder` as
    the stream. :meth:`Graph.bind` makes what is launched with others. Constant, and has no subclasses.

    Attributes
    ----------
    name : str
        As of a keyword argument. Several arguments may have one name, also of different launches, and each may have
        another example.
    example : object
        What the argument is where nobody says otherwise: whatever :func:`ftcuda.launch` takes there. The graph keeps
        it, where the garbage collector does not see it: close a graph that the example refers to.
    """

    name: str
    example: object

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a str, not {type(self.name).__name__}")
        name = str.__str__(self.name)  # of a subclass, which may compare as it likes
        if not name.isidentifier() or iskeyword(name) or name == "__debug__":
            raise ValueError(f"name must be one that a keyword argument may have, not {name!r}")
        if normalize("NFKC", name) != name:
            raise ValueError(
                f"name must be as Python reads it in a call, which is {normalize('NFKC', name)!r}, not {name!r}"
            )
        if isinstance(self.example, Parameter):
            raise TypeError(f"example must be what the argument is, not another Parameter; {PARAMETER_BELONGS}")
        object.__setattr__(self, "name", name)

    def __init_subclass__(cls) -> None:
        raise TypeError("Parameter has no subclasses")
