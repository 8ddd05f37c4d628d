"""What is printed with rich: messages, paths and names have brackets and colons of their own, which are neither markup nor emoji."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READS_MARKUP = {"Console": {"markup", "emoji"}, "TextColumn": {"markup"}}
SOURCES = [path for folder in ("src", "stress", "benchmarks", "examples", "ci") for path in (ROOT / folder).rglob("*.py")]


def calls(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            yield name, node


def test_there_is_something_to_look_at():
    assert sum(name in READS_MARKUP for path in SOURCES for name, _ in calls(path)) >= 6


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_printed_is_taken_for_markup(path):
    for name, node in calls(path):
        assert name not in ("from_markup", "rprint"), f"{path}:{node.lineno} reads markup"
        off = {word.arg for word in node.keywords if isinstance(word.value, ast.Constant) and word.value.value is False}
        on = {word.arg for word in node.keywords} - off
        assert off >= READS_MARKUP.get(name, set()), f"{path}:{node.lineno}: {name} without {READS_MARKUP[name]} turned off"
        if name == "print":
            assert not on & {"markup", "emoji"}, f"{path}:{node.lineno} turns markup on again"
