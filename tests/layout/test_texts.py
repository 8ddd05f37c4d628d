"""What becomes a text of C comes through zero_ended(), which refuses what C would cut."""

import re
from pathlib import Path

import pytest

from ftcuda._objects.support.texts import zero_ended

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "ftcuda"
ENCODES = re.compile(r"\bencode\(|\bfsencode\(|\bPyUnicode_AsUTF8|\bPyUnicode_AsUTF8AndSize")
# Lines that encode and give nothing to C.
HARMLESS = {
    "_objects/support/texts.py": "zero_ended() itself",
    "_objects/code/cached_program.py": "what a cache keeps beside an image",
    "_objects/code/program_cache.py": "keys of caches",
    "_objects/code/program_key.py": "parts of a digest",
    "testing/__main__.py": "a path for a hash",
    "testing/simulation.pyx": "names of a table, and the path of the driver that was loaded",
}


def lines_that_encode():
    for path in sorted((*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd"))):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if ENCODES.search(line.split("#")[0]):
                yield str(path.relative_to(PACKAGE)), number, line.strip()


def test_every_text_for_c_is_looked_at():
    found = list(lines_that_encode())
    assert {name for name, _, _ in found} >= set(HARMLESS)  # or an entry is for nothing
    unseen = [each for each in found if each[0] not in HARMLESS and "zero_ended(" not in each[2]]
    assert unseen == [], "give these to zero_ended(), or say above why C never sees them"


@pytest.mark.parametrize("text", ["a\0b", "\0", "a\0", b"a\0b", bytearray(b"\0"), Path("a\0b")], ids=repr)
def test_a_zero_is_refused(text):
    with pytest.raises(ValueError, match="it must not contain a NUL character"):
        zero_ended(text, "it")


@pytest.mark.parametrize("text", ["aä", "aä".encode(), bytearray("aä".encode()), Path("aä")], ids=repr)
def test_other_texts_are_utf_8(text):
    assert zero_ended(text, "it") == b"a\xc3\xa4"
