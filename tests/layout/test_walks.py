"""The calls that docs/design/architecture.md walks through are there, in the file that it names, or in the last one that it named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ftcuda"
PAGE = ROOT / "docs" / "design" / "architecture.md"


def steps():
    """Each function that a walk names, with the file where it stands."""
    _, text = PAGE.read_text().split("## Five calls, function by function")
    file = None
    for line in text.splitlines():
        if not line.startswith("    ") or line.lstrip().startswith("-"):
            continue
        names, _, said = line.strip().partition("  ")
        if not re.fullmatch(r"[\w.:]+(, [\w.:]+)*", names):
            continue
        if found := re.search(r"_(?:core|objects)/[\w/]+\.\w+", said):
            file = found.group()
        for name in names.split(", "):
            yield file, name


def defines(text, name):
    """Whether a source defines a function, in C++ or Cython, also as a method of a class."""
    owner, _, last = name.replace("::", ".").rpartition(".")
    if owner and not re.search(rf"\bclass {owner}\b|\b{owner}::{last}\(", text):
        return False
    return bool(re.search(rf"^\s*(?:async )?(?:def|cdef|cpdef)\b[^=\n]*\b{last}\(|^[\w:<>&*,\[\] ]*\b{last}\([^;]*$", text, re.MULTILINE))


@pytest.mark.parametrize(("file", "name"), list(steps()), ids=lambda value: str(value))
def test_the_function_is_there(file, name):
    path = PACKAGE / file
    near = [path, *path.parent.glob("*.p[xy]*"), *path.parent.glob("*.[hc]pp")]
    assert path.exists()
    anywhere = [each for each in PACKAGE.rglob("*") if each.suffix in {".py", ".pyx", ".pxd", ".cpp", ".hpp"}]
    assert any(defines(each.read_text(), name) for each in (near if "." in name or ":" in name else anywhere))


def test_what_is_no_function():
    assert defines("cdef int taken(self) except -1:\n", "taken") and defines("Status Cache::give(int a) {\n", "Cache::give")
    assert not defines("    taken(1);\n", "taken") and not defines("Status Cache::give(int a) {\n", "Cache::take")
