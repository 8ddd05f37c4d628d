"""Fixtures for all tests. They run on the simulated driver (FTCUDA_DRIVER=sim) or on a GPU, unchanged."""

import gc
import os
import re
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import ftcuda
from ftcuda import Device, LegacyPinnedMemoryResource
from ftcuda.testing import settle, simulated_clock
from ftcuda.testing.settling import give_back
from tests.kernels import IS_SIMULATED, SAXPY, compile_code
from tests.parallel import report_warnings

IS_SANITIZED = "TSAN_OPTIONS" in os.environ
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # as the usual repr() ends
PROFILE = os.environ.get("FTCUDA_SIM_PROFILE", "13.5")

report_warnings()
# A second run draws the same examples. Others are for ci/proof.sh, which prints how to repeat what it finds.
settings.register_profile("fixed", derandomize=True, deadline=None)
if "FTCUDA_RANDOM" not in os.environ:
    settings.load_profile("fixed")


def pytest_report_header():
    info = ftcuda.driver_info()
    gil = "enabled" if sys._is_gil_enabled() else "disabled"
    nvrtc = ".".join(map(str, ftcuda.nvrtc_version()))
    name = f"simulated, profile {PROFILE}" if info.simulated else Device(0).name
    return f"ftcuda: GIL {gil}, driver {info.version} ({name}), NVRTC {nvrtc}"


def pytest_collection_modifyitems(items):
    """Names are the same in each process: else pytest-xdist refuses them, and nobody can ask for one again."""
    if named := [item.nodeid for item in items if ADDRESS.search(item.nodeid)]:
        raise pytest.UsageError(f"names of tests hold addresses: {', '.join(named[:5])}")


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # what is imported by now stays: looking at it after each test takes longer than most tests
    # The interpreter, without the GIL, looks at it all the same, whenever so many objects were made: that took a twentieth of the time,
    # and more under ThreadSanitizer. Leaks are looked for below.
    gc.set_threshold(20000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What a failed test held goes with its report: a capture left open would fail each test after it."""
    report = yield
    if call.excinfo is not None and not item.config.option.usepdb:
        traceback.clear_frames(call.excinfo.tb)
    return report


def live_handles():
    from ftcuda.testing import simulation

    return {name: count for name, count in simulation.live().items() if name != "context"}


# What a context keeps for its own use, once it needed it: idle events, its housekeeping stream and those in which others' events
# are waited for, and pages of words that streams write.
KEPT = {"event": 64, "stream": 1 + 4, "pinned_allocation": 4}


def changes_since(before):
    """By how much the handles of each kind are more or fewer, but for what a context may keep, and gives back late."""
    changes = {kind: count - before[kind] for kind, count in live_handles().items()}
    return {kind: change for kind, change in changes.items() if (change > KEPT[kind] if kind in KEPT else change != 0)}


# The file of the last test and the handles that it left: the next one of the same file begins with them.
LEFT = pytest.StashKey[tuple[Path, dict[str, int]]]()


@pytest.fixture(autouse=True)
def nothing_left_behind(code, request):
    """After each test: no handle that was not there before, no violation, no deferred error."""
    if not IS_SIMULATED:
        yield
        return
    from ftcuda.testing import simulation

    if IS_SANITIZED:  # to collect garbage takes seconds there, after each test; leaks are looked for without it
        simulation.clear_violations()
        yield
        assert simulation.violations() == []
        return
    stash = request.config.stash
    before = live_handles()
    if stash.get(LEFT, None) != (request.path, before):  # what a file's fixtures made may wait to be collected
        settle()
        gc.freeze()  # what came with a file, and the reports of its tests
        before = live_handles()
    simulation.clear_violations()
    yield
    give_back()  # also warns, and so fails, if a destructor failed
    changes = changes_since(before)
    until = time.monotonic() + 5
    while changes and time.monotonic() < until:  # garbage, which takes longer to collect than most tests; or of a thread that ends
        settle()
        changes = changes_since(before)
    stash[LEFT] = request.path, live_handles()
    assert simulation.violations() == []
    assert changes == {}


@pytest.fixture(scope="session")
def device():
    return Device(0)


@pytest.fixture
def stream(device):
    stream = device.create_stream()
    yield stream
    stream.close()


def needs_nvrtc(version, what):
    if ftcuda.nvrtc_version() < version:
        pytest.skip(f"NVRTC has no {what} before {'.'.join(map(str, version))}")


@pytest.fixture(scope="session")
def code():
    code = compile_code(SAXPY)
    code.get_kernel("empty")  # loads it, so that no test finds a new module
    return code


@pytest.fixture
def saxpy(code):
    return code.get_kernel("saxpy")


@pytest.fixture
def pinned():
    """Allocates a pinned buffer with an array's contents; returns it and a view of the given type."""
    resource = LegacyPinnedMemoryResource()
    made = []

    def allocate(array):
        array = np.ascontiguousarray(array)
        buffer = resource.allocate(array.nbytes)
        view = np.frombuffer(buffer, array.dtype)
        view[:] = array.ravel()
        made.append(buffer)
        return buffer, view

    yield allocate
    made.clear()


@pytest.fixture
def held_clock():
    """Stops the simulated device for a block. Tests that use it are not safe in threads of one process."""
    if not IS_SIMULATED:
        pytest.skip("stops the simulated device's clock")
    from ftcuda.testing import simulation

    return simulation.held_clock


@pytest.fixture
def ptx_fits():
    """For programs that compile for the driver as it is, without compile_code()."""
    newest = float(ftcuda.driver_info().version)
    compiler = float(".".join(map(str, ftcuda.nvrtc_version())))
    if IS_SIMULATED and compiler > newest:
        pytest.skip(reason="this NVRTC is newer than the simulated driver, which refuses its PTX")


@pytest.fixture
def run_python():
    """Runs a program in a process of its own, for what ends a process or a context; returns what it printed."""
    if IS_SANITIZED:
        pytest.skip(reason="under ThreadSanitizer a process takes 10 s and more to start: ci/sanitize.sh watches threads of one")

    def run(program, expect=0, **environment):
        result = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-W", "error", "-c", program],
            capture_output=True, text=True, timeout=240, env={**os.environ, **environment},
        )  # fmt: skip
        assert result.returncode == expect, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout + result.stderr

    return run


def seeds(count):
    """The seeds of so many schedules. Of a tenth under ThreadSanitizer, where a thread takes 0.1 s to start: it sees a race by the
    order that is missing, without the seed that makes the threads meet."""
    return range(count // 10 if IS_SANITIZED else count)


def expires(wait, seconds, match=None):
    """`wait` fails with a TimeoutError after so many seconds, and not before: simulated ones, which another thread lets pass.
    A real driver has no such clock, and they pass by themselves. No two threads of a process at once."""
    begun = time.monotonic()
    with simulated_clock() if IS_SIMULATED else nullcontext() as clock, ThreadPoolExecutor(1) as pool:

        def let_time_pass():
            clock.advance(seconds - 1e-6, waiting=1)
            waits_on = clock.waiting == 1
            clock.advance(2e-6)
            return waits_on and clock.waiting == 0

        passing = pool.submit(let_time_pass) if IS_SIMULATED and seconds else None
        with pytest.raises(TimeoutError, match=match):
            wait()
        assert passing is None or passing.result()
    assert IS_SIMULATED or time.monotonic() - begun >= seconds


@pytest.fixture
def when_waiting():
    """A function that returns when so many threads wait, for each other or for work. A real driver cannot tell: most
    probably they do after a while. No two threads of a process at once."""
    if not IS_SIMULATED:
        yield lambda threads=1: time.sleep(0.1)
        return
    with simulated_clock() as clock:
        yield clock.wait_for_waiting


simulated_only = pytest.mark.skipif(not IS_SIMULATED, reason="steers the simulated driver")
