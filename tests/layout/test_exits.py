"""What is printed before `os._exit` is flushed: that call ends a process without it, and to a pipe nothing arrives."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tests", "stress", "benchmarks", "examples", "src")
SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def programs(tree):
    """The tree and those of the programs in its texts; what is formatted into one counts as a number."""
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values)
        else:
            continue
        if "os._exit" in text:
            try:
                yield ast.parse(text)
            except SyntaxError:
                continue  # a line of a longer text, or no program


def named(node):
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def within(scope):
    """The nodes of a scope without those of scopes in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, SCOPES):
            yield node
            yield from within(node)


def lost(tree):
    """The lines whose output may be lost."""
    for scope in ast.walk(tree):
        if not isinstance(scope, SCOPES):
            continue
        ends = [node.lineno for node in within(scope) if named(node) == "os._exit"]
        flushed = [node.lineno for node in ast.walk(scope) if named(node).endswith(".flush")]
        for node in ast.walk(scope) if ends else ():
            words = {word.arg: ast.unparse(word.value) for word in getattr(node, "keywords", ())}
            if named(node) == "print" and words.get("flush") != "True" and words.get("file") != "sys.stderr":
                later = [line for line in ends if line > node.lineno]
                if later and not any(node.lineno < line < later[0] for line in flushed):
                    yield node.lineno


SOURCES = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "os._exit" in path.read_text() and path.name != Path(__file__).name
]


def test_there_is_something_to_look_at():
    assert len(SOURCES) > 5


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_printed_is_lost(path):
    for program in programs(ast.parse(path.read_text())):
        assert list(lost(program)) == [], f"{path}: print without flush=True before os._exit:\n{ast.unparse(program)[:2000]}"


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("print(1)\nos._exit(0)", [1]),
        ("print(1, flush=True)\nos._exit(0)", []),
        ("print(1)\nsys.stdout.flush()\nos._exit(0)", []),
        ("def say():\n    print(1)\nsay()\nos._exit(0)", [2]),
        ("def child():\n    os._exit(0)\nchild()\nprint(1)", []),
        ("print(1, file=sys.stderr)\nos._exit(0)", []),
    ],
)
def test_what_is_lost(program, lines):
    assert list(lost(ast.parse(program))) == lines


def test_it_is_so(run_python):
    """Why this matters: what stands in a buffer at the end is gone."""
    assert run_python("import os\nprint(1)\n" + "os._exit(0)", PYTHONUNBUFFERED="") == ""
