"""The promise table, docs/promise.toml, as calls that can be raced."""

import builtins
import concurrent.futures
import tomllib
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from pathlib import Path
from types import CodeType

import ftcuda
import ftcuda.graph
import ftcuda.serving

TABLE = Path(__file__).parent.parent / "docs" / "promise.toml"


@dataclass(frozen=True)
class Call:
    """One public method or property, and the expression that uses it on the shared object `it`."""

    name: str
    level: str | None  # None: a call of another object that takes this one
    code: CodeType
    closes: bool
    may_raise: tuple[type[BaseException], ...]


@dataclass(frozen=True)
class Subject:
    """A public class, the ways to make one, and all its calls."""

    name: str
    makers: list[CodeType]
    unscheduled: bool = False  # threads of the library's take part, of which no schedule knows
    calls: dict[str, Call] = field(default_factory=dict)

    def pairs(self) -> list[tuple[CodeType, Call, Call]]:
        """Every unordered pair of calls, of one with itself too, for every way to make the object."""
        return [
            (maker, first, second)
            for maker in self.makers
            for first, second in combinations_with_replacement(self.calls.values(), 2)
        ]


def read() -> list[Subject]:
    """Returns the table."""
    return [subject(name, section) for name, section in tomllib.loads(TABLE.read_text()).items()]


def subject(name: str, section: dict) -> Subject:
    """Returns one section of the table."""
    makers = [compile(text, f"{name}.make", "eval") for text in section["make"]]
    made = Subject(name, makers, section.get("unscheduled", False))
    levels = {member: (level, text) for member, (level, text) in section["members"].items()}
    uses = {member: (None, text) for member, text in section.get("also", {}).items()}
    for member, (level, text) in {**levels, **uses}.items():
        errors = section.get("may_raise", {}).get(member, [])
        made.calls[member] = Call(
            member,
            level,
            compile(text, f"{name}.{member}", "eval"),
            member in section.get("closes", []),
            tuple(exception(error) for error in errors),
        )
    return made


def exception(name: str) -> type[BaseException]:
    """Returns the one of that name."""
    places = (ftcuda.errors, builtins, concurrent.futures)
    return next(getattr(place, name) for place in places if hasattr(place, name))
