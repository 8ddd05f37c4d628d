"""Comments of C++ fill their lines: what a change of width once broke stays mended."""

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120
TEXT = re.compile(r"^(\s*)// (\S.*)$")
# Lists, tables and directives to tools keep their lines.
BEGINS_A_LINE = re.compile(r"^([-*=]|\d+[.)] |NOLINT|clang-format)|[|]|  ")


def paragraphs(lines):
    """Of each paragraph of prose: the number of its first line, its indentation, and its lines."""
    number = 0
    while number < len(lines):
        first, number = number, number + 1
        if (found := TEXT.match(lines[first])) is None:
            continue
        indentation, text = found[1], [found[2]]
        while number < len(lines) and (found := TEXT.match(lines[number])) and found[1] == indentation:
            if BEGINS_A_LINE.search(found[2]):
                break
            text.append(found[2])
            number += 1
        if not BEGINS_A_LINE.search(text[0]):
            yield first + 1, indentation, text


def broken(text):
    """Numbers of the lines where paragraphs begin that are not filled."""
    return [
        first
        for first, indentation, lines in paragraphs(text.splitlines())
        if lines
        != textwrap.wrap(" ".join(lines), WIDTH - len(indentation) - len("// "), break_long_words=False, break_on_hyphens=False)
    ]


def test_comments_fill_their_lines():
    sources = [path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*") if path.suffix in (".hpp", ".cpp")]
    assert len(sources) > 100
    assert {str(path.relative_to(ROOT)): found for path in sources if (found := broken(path.read_text()))} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("// One.\nint a;\n// Two.\n", []),
        ("    // It was broken\n    // here.\n", [1]),
        ("// A paragraph.\n//\n// And another one,\n// broken.\n", [3]),
        ("// A list:\n// - one\n// - two\n", []),
        ("// " + "word " * 40 + "\n", [1]),
    ],
)
def test_what_is_broken(text, found):
    assert broken(text) == found
