"""One version, in all the places that name it."""

import re
from pathlib import Path

import ftcuda

ROOT = Path(__file__).resolve().parents[2]
VERSION = (ROOT / "VERSION").read_text().strip()


def test_the_version_is_the_same_everywhere():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGES.md").read_text(), re.MULTILINE)
    assert ftcuda.__version__ == VERSION == cited[1] == latest[1]
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_changes_are_sorted_by_what_they_are():
    """Each version says what was added, changed, fixed and removed, in this order, and nothing else."""
    for version in re.split(r"^## ", (ROOT / "CHANGES.md").read_text(), flags=re.MULTILINE)[1:]:
        heads = re.findall(r"^### (.+)$", version, re.MULTILINE)
        order = ["Added", "Changed", "Fixed", "Removed"]
        assert heads and heads == [each for each in order if each in heads], version.partition("\n")[0]
