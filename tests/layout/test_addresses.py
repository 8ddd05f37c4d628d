"""Names of tests are the same in each process."""

from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems


def test_no_name_holds_an_address():
    """Of all that are collected with this one: `pytest_collection_modifyitems` looks at them."""
    pytest_collection_modifyitems([SimpleNamespace(nodeid="tests/test_it.py::test_it[0x10]")])
    named = SimpleNamespace(nodeid=f"tests/test_it.py::test_it[{object()!r}]")
    with pytest.raises(pytest.UsageError, match=r"names of tests hold addresses: tests/test_it.py::test_it\[<object object at 0x"):
        pytest_collection_modifyitems([named])
