"""What gives a lease back or closes does so detached from the interpreter. Reads sources, needs no compiler."""

import re
from pathlib import Path

OBJECTS = Path(__file__).resolve().parents[2] / "src" / "ftcuda" / "_objects"
# Whoever is the last to leave destroys, and so may wait in the driver.
ENDS = re.compile(r"\._(?:buffer|stream|event|entered|pool|resource)\.(?:leave|close)\(")


def enclosing(lines, number):
    """The heads of the blocks that a line stands in."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    for line in reversed(lines[:number]):
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth < indent:
            indent = depth
            yield line.strip()


def attached_ends(text):
    lines = text.splitlines()
    return [
        line.strip()
        for number, line in enumerate(lines)
        if ENDS.search(line) and "with nogil:" not in enclosing(lines, number)
    ]


def test_what_may_destroy_is_detached():
    found = [path.read_text() for path in OBJECTS.rglob("*.pyx")]
    assert [line for text in found for line in attached_ends(text)] == []
    assert sum(len(ENDS.findall(text)) for text in found) >= 13  # that it still knows what it looks for


def test_the_lint_sees():
    detached = "def close(self):\n    with nogil:\n        if entered:\n            self._event.close()\n"
    attached = "def close(self):\n    with nogil:\n        pass\n    self._event.close()\n"
    assert attached_ends(detached) == [] and attached_ends(attached) == ["self._event.close()"]
