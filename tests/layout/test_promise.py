"""The promise table against the code's docstrings and the document that is written from it."""

import inspect
import subprocess
import sys
import tomllib
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path

import pytest

import ftcuda
import ftcuda.graph
import ftcuda.serving

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads((ROOT / "docs" / "promise.toml").read_text())
PUBLIC = {name: getattr(module, name) for module in (ftcuda, ftcuda.graph, ftcuda.serving) for name in module.__all__}


def documented(thing, name):
    """The docstring of a member, or the line about it in its class's."""
    member = inspect.getattr_static(thing, name)
    text = inspect.getdoc(member.__func__ if isinstance(member, staticmethod | classmethod) else member) or ""
    if "Thread safety" not in text and f"{name} : " in (inspect.getdoc(thing) or ""):
        text = inspect.getdoc(thing)
    return text


# Of their subclasses only what these have beyond them is in the table.
BASES = (
    ftcuda.MemoryResource,
    ftcuda.graph.GraphNode,
    ftcuda.graph.ConditionalNode,
    ftcuda.graph.ExecutableGraphNode,
)


def public_members(thing):
    """All of a class, or what it has beyond a base."""
    members = {member for kind in thing.__mro__[:-1] for member in vars(kind) if not member.startswith("_")}
    for base in BASES:
        if issubclass(thing, base) and thing is not base:
            members -= public_members(base)
    return members


@pytest.fixture
def sections(saxpy):
    """Name, class and entries of each section but that of the functions."""
    occupancy = type(saxpy.occupancy)
    return [
        (name, occupancy if name == "KernelOccupancy" else PUBLIC[name], section)
        for name, section in TABLE.items()
        if name != "functions"
    ]


def test_every_public_class_and_function_is_in_the_table():
    functions = {name for name, thing in PUBLIC.items() if callable(thing) and not inspect.isclass(thing)}
    assert set(TABLE["functions"]["members"]) == functions
    wanted = {
        name for name, thing in PUBLIC.items()
        if inspect.isclass(thing) and not is_dataclass(thing) and not issubclass(thing, BaseException | Enum)
        and (public_members(thing) or not issubclass(thing, BASES))
    }  # fmt: skip
    assert set(TABLE) - {"functions", "KernelOccupancy"} == wanted


def test_every_public_member_is_in_the_table(sections):
    for name, thing, section in sections:
        assert set(section["members"]) == public_members(thing), name


def test_levels_are_those_of_the_docstrings(sections):
    for name, thing, section in sections:
        for member, (level, _) in section["members"].items():
            text = documented(thing, member)
            assert f"Thread safety: {level}" in text or f"; {level} for" in text, (
                f"{name}.{member} is not {level}: {text!r}"
            )


def test_functions():
    for member, (level, _) in TABLE["functions"]["members"].items():
        assert f"Thread safety: {level}" in inspect.getdoc(PUBLIC[member]), member


def test_calls_name_what_there_is(sections):
    for name, _, section in sections:
        calls = {*section["members"], *section.get("also", {})}
        assert set(section.get("closes", [])) <= calls and set(section.get("may_raise", {})) <= calls, name


def test_the_document_is_up_to_date():
    said = subprocess.run(
        [sys.executable, "-c", "import promise, sys; sys.exit(promise.document() != (promise.DOCS / 'promise.md').read_text())"],
        cwd=ROOT / "ci",
    )  # fmt: skip
    assert said.returncode == 0, "run: python ci/promise.py"
