"""Writes docs/reference.md from the docstrings: `$python ci/reference.py`, with an interpreter that has ftcuda.

tests/examples/test_reference.py compares the two.
"""

import enum
import inspect
import re
from pathlib import Path
from pkgutil import resolve_name

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
MODULES = (
    "ftcuda", "ftcuda.graph", "ftcuda.serving", "ftcuda.serving.prometheus", "ftcuda.memory", "ftcuda.memory.hooks",
    "ftcuda.utils", "ftcuda.testing", "ftcuda.testing.hazard",
)  # fmt: skip
HEAD = """# API reference

Every public name, with the first sentence of its docstring. The whole of it, with parameters, units, errors, the level
of thread safety and the order in streams, is what `help(ftcuda.Stream.wait)` prints. Pages with all of that, made by
Sphinx, will be in `docs/reference/`.

Written by `ci/reference.py`.
"""


def first_sentence(thing: object) -> str:
    """Returns the first sentence of a docstring, without the signature that Cython puts in front."""
    text = inspect.getdoc(thing) or ""
    if re.match(r"\w+\(.*\)( -> .*)?\n", text):
        text = text.partition("\n")[2].lstrip()
    paragraph = " ".join(text.split("\n\n")[0].split())
    paragraph = re.sub(r" ?Thread safety: \w+\.", "", paragraph)
    paragraph = re.sub(r":\w+:`([^`]+)`", r"`\1`", paragraph).replace("``", "`").replace("|", "\\|")
    return re.split(r"(?<=[.:]) (?=[A-Z])", paragraph)[0]


def signature(name: str, thing: object) -> str:
    """Returns a call as it is written."""
    if isinstance(thing, property) or not callable(thing):
        return name
    match = re.match(r"\w+(\(.*\))", inspect.getdoc(thing) or "")
    if match and match[0].startswith(name + "("):
        text = match[1]
    else:
        try:
            text = str(inspect.signature(thing)).partition(" ->")[0]
        except (TypeError, ValueError):
            return f"{name}()"
    text = re.sub(r"\((self|cls)(, )?", "(", text)
    return f"{name}{re.sub(r': (?:[^,=)[]|\[(?:[^][]|\[[^][]*\])*\])+', '', text)}"


def members(kind: type) -> list[tuple[str, object]]:
    """Returns the public members of a class that have a docstring of their own, its bases' too."""
    found = {}
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] != "ftcuda":
            continue
        for name, thing in vars(base).items():
            plain = thing.__func__ if isinstance(thing, (staticmethod, classmethod)) else thing
            is_value = isinstance(plain, (int, float, str))
            if not name.startswith("_") and getattr(plain, "__doc__", None) and not is_value:
                found.setdefault(name, plain)
    return sorted(found.items())


def section(module: str) -> list[str]:
    """Returns the lines of a module."""
    there = resolve_name(module)
    lines = ["", f"## {module}"]
    public = sorted(getattr(there, "__all__", ["on_allocate", "on_free"]))
    things = [(name, getattr(there, name)) for name in public if not inspect.ismodule(getattr(there, name))]
    plain = [(name, thing) for name, thing in things if not inspect.isclass(thing) and callable(thing)]
    objects = [(name, thing) for name, thing in things if not callable(thing)]
    if plain or objects:
        lines += ["", "| name | what |", "| --- | --- |"]
        lines += [f"| `{signature(name, thing)}` | {first_sentence(thing)} |" for name, thing in plain]
        lines += [f"| `{name}` | a `{type(thing).__name__}` |" for name, thing in objects]
    for name, kind in things:
        if not inspect.isclass(kind):
            continue
        lines += ["", f"### {name}", "", first_sentence(kind)]
        rows = [] if issubclass(kind, (BaseException, enum.Enum)) else members(kind)
        if rows:
            lines += ["", "| member | what |", "| --- | --- |"]
            lines += [f"| `{signature(member, thing)}` | {first_sentence(thing)} |" for member, thing in rows]
    return lines


def page() -> str:
    """Returns docs/reference.md as it should be."""
    return HEAD + "\n".join(line for module in MODULES for line in section(module)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
