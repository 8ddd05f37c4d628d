"""What a soak says of a figure that grows: that it does, and while which hazard."""

import ctypes
import gc
from types import SimpleNamespace

import pytest

pytest.importorskip("rich", reason="the harness prints with rich")

from ftcuda.stress import soak
from ftcuda.testing.hazard import Environment
from tests.conftest import simulated_only

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="it measures the process")]

PAGE = 64 * 1024
leaked = []


def leak_of_c():
    malloc = soak.LIBC.malloc
    malloc.restype = ctypes.c_void_p
    ctypes.memset(malloc(PAGE), 1, PAGE)


def leak_of_python():
    leaked.extend([object() for _ in range(PAGE // 16)])


def no_leak():
    bytes(PAGE)


class Rounds:
    """In place of the harness's runner: rounds that only leak."""

    timeout = 30.0

    def __init__(self, **hazards):
        self.hazards = hazards

    def cases(self, name):
        return 1

    def round(self, name, seed):
        self.hazards[name]()
        return True


@pytest.fixture
def curves(monkeypatch):
    """Runs a short soak of two hazards; returns its curves by name. Time passes by the sample."""

    def run(**hazards):
        gc.freeze()  # each sample collects: what pytest has is not looked at 400 times
        clock = iter(range(10_000))
        monkeypatch.setattr(soak, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        made = soak.run(Rounds(**hazards), Environment(), list(hazards), 1, 200.0, lambda now: None)
        return {curve.name: curve for curve in made}

    yield run
    leaked.clear()


@pytest.mark.skipif(not soak.HAS_MALLINFO, reason="this libc does not tell what its allocator has given out")
def test_c_memory_that_grows_is_found_and_its_hazard_named(curves):
    memory = curves(leak_of_c=leak_of_c, no_leak=no_leak)["malloc memory"]
    assert not memory.is_flat()
    assert memory.growers()[0][0] == "leak_of_c"
    assert memory.growers()[0][1] >= 40 * PAGE  # of about 80 rounds after the warm-up


def test_python_objects_that_grow_are_found_and_their_hazard_named(curves):
    blocks = curves(leak_of_python=leak_of_python, no_leak=no_leak)["Python blocks"]
    assert not blocks.is_flat()
    assert blocks.growers()[0][0] == "leak_of_python"


def test_what_does_not_grow_is_flat(curves):
    for curve in curves(no_leak=no_leak, nothing=lambda: None).values():
        assert curve.is_long_enough() and curve.is_flat(), curve.name


def test_an_interrupted_soak_has_its_curves(curves, capsys):
    rounds = iter(range(60))

    def interrupted():
        if next(rounds, None) is None:
            raise KeyboardInterrupt

    assert all(len(curve.values) >= 20 for curve in curves(interrupted=interrupted).values())
    assert "interrupted" in capsys.readouterr().err
