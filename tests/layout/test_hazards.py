"""The hazards: each says by which answers it knows that something went wrong, and together they use everything public."""

import ast
import inspect
import tomllib
from pathlib import Path

import pytest

from ftcuda.testing.hazard import Hazard, ProcessHazard
from stress import kinds
from stress.program import OURS

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads((ROOT / "docs" / "promise.toml").read_text())
HAZARDS = {name: OURS.find(name) for name in OURS.own()}


def program_of(hazard):
    """The code that does the hazard's part: its class and those it is made of, or the program it runs."""
    own = [kind for kind in hazard.__mro__ if kind not in (object, Hazard, ProcessHazard)]
    text = "\n".join(Path(inspect.getfile(kind)).read_text() for kind in own)
    return f"{text}\n{hazard.program}" if issubclass(hazard, ProcessHazard) else text


@pytest.mark.parametrize("name", HAZARDS)
def test_every_hazard_states_its_oracle(name):
    hazard = HAZARDS[name]
    assert "oracle" in vars(hazard) and len(hazard.oracle) > 20, f"{name} does not say what it looks at"
    assert hazard.__doc__, name


@pytest.mark.parametrize("name", HAZARDS)
def test_every_hazard_looks_at_an_answer(name):
    """It raises by itself when an answer is wrong, in what it does or in what it checks; or its process does."""
    hazard = HAZARDS[name]
    if issubclass(hazard, ProcessHazard):
        assert "assert" in hazard.program or "os._exit(1)" in hazard.program or hazard.silent, name
        return
    tree = ast.parse(program_of(hazard))
    raised = [node for node in ast.walk(tree) if isinstance(node, ast.Raise) and "AssertionError" in ast.unparse(node)]
    assert raised, f"{name} raises nothing"


@pytest.mark.parametrize("name", HAZARDS)
def test_no_hazard_throws_an_answer_away(name):
    """Asked whether something is done or closed, it does something with what it is told."""
    path = Path(inspect.getfile(HAZARDS[name]))
    for node in ast.walk(ast.parse(path.read_text())):
        value = node.value if isinstance(node, ast.Expr) else node.body if isinstance(node, ast.Lambda) else None
        is_thrown_away = isinstance(value, ast.Attribute) and value.attr in ("is_done", "is_closed")
        assert not is_thrown_away, f"{path.name}:{node.lineno} asks and does not look at the answer"


def test_objects_of_every_kind_are_handed_over():
    """Sections of the promise table, which has every public class and function, but for the functions."""
    assert set(kinds.KINDS) == set(TABLE) - {"functions"}


def test_every_way_to_make_an_object_is_raced():
    """By `pairs`; and the default streams, which nobody makes, are among the streams that are raced and handed over."""
    assert all(section["make"] for section in TABLE.values())
    for stream in ("LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM"):
        assert any(stream in made for made in TABLE["Stream"]["make"]), stream
        using = [name for name, hazard in HAZARDS.items() if stream in program_of(hazard)]
        assert len(using) >= 2 and stream in inspect.getsource(kinds), f"{stream} is used by {using}"
