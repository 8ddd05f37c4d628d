"""docs/reference.md is what the docstrings say."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import ftcuda

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference():
    spec = spec_from_file_location("reference", ROOT / "ci" / "reference.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="written with 3.13, whose own docstrings are in it in places")
def test_the_page_is_that_of_the_docstrings(reference):
    """`$python ci/reference.py` writes it anew."""
    assert reference.page() == reference.PAGE.read_text()


def test_every_public_name_has_a_sentence(reference):
    text = reference.PAGE.read_text()
    for name in ftcuda.__all__:
        assert f"### {name}\n\n" in text or f"| `{name}" in text, name
    assert "|  |" not in text and "\n\n\n" not in text
