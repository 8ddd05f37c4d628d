"""README, the guides and the promise are read by people in a hurry: no sentence has more than thirty words."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "promise.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
LONGEST = 30


def sentences(text):
    """The sentences of a page; each cell of a table is read alone. Code in a sentence is one word."""
    text = re.sub(r"```.*?```", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"^(    .*\n)+", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"\]\([^)]*\)|[\[*!]", "", text)
    for piece in re.split(r"\n\s*\n|\n(?=- |#|\d\. )|\||\n(?=\|)", text):
        yield from re.split(r"(?<=[.!?])\)?\s+(?=[A-Z0-9(]|ftcuda)", " ".join(piece.split()))


def words(sentence):
    return len(re.findall(r"[A-Za-z0-9][\w'.,/-]*", sentence))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_are_short(page):
    long = [f"{words(each)}: {each}" for each in sentences(page.read_text()) if words(each) > LONGEST]
    assert long == []


def test_what_a_sentence_is():
    page = "One. `two` is code. Three\nlines (in\nbrackets.) **Four.** Five:\n\n- six\n- seven\n\n| a | b c |\n\n```\nnot this. Nor that.\n```\n"
    assert [each for each in sentences(page) if each] == [
        "One.", "CODE is code.", "Three lines (in brackets.", "Four.", "Five:", "- six", "- seven", "a", "b c",
    ]  # fmt: skip
    assert words("3.13t is one, and so is CODE") == 7
