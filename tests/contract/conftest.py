"""Fixtures of the tests of graphs, which call the driver itself."""

from ctypes import c_void_p
from types import SimpleNamespace

import numpy as np
import pytest

from tests.contract.graphs import SOURCE, Driver
from tests.kernels import compile_code


@pytest.fixture(scope="module")
def graph_kernels(device):
    code = compile_code(SOURCE)
    return {name: code.get_kernel(name) for name in ("store", "digit", "maybe", "add")}


@pytest.fixture
def driver(device, graph_kernels):
    driver = Driver(device, graph_kernels)
    yield driver
    driver.close()


@pytest.fixture
def memory(pinned):
    """Pinned words: what the device writes, the host reads after it waited."""
    buffer, words = pinned(np.zeros(1024, np.int32))
    address = int(buffer.handle)
    memory = SimpleNamespace(words=words, at=lambda index: c_void_p(address + 4 * index))
    yield memory
    del memory.words  # the fixture's value lives longer than the test


@pytest.fixture
def violations():
    """What was reported, which then is no failure of the test."""
    from ftcuda.testing import simulation

    def take():
        found = simulation.violations()
        simulation.clear_violations()
        return found

    return take
