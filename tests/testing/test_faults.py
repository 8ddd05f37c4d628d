"""What the plan of faults takes, and what it refuses because it could never apply."""

import sys

import pytest

import ftcuda
from ftcuda.testing import faults, simulation
from tests.conftest import simulated_only

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="plans faults for the whole process")]

PLANS = {
    "failing": lambda entry, **more: faults.failing(entry, 1, **more),
    "holding": faults.holding,
    "poisoning": lambda entry, **more: faults.poisoning(entry, 1, **more),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_what_could_never_apply_is_refused_at_once(plan):
    """Where the function is called, not where its block begins; and nothing is planned then."""
    with pytest.raises(ValueError, match="no entry 'cuNoSuchEntry': see"):
        plan("cuNoSuchEntry")
    with pytest.raises(ValueError, match="no entry 'cuMemAllocAsyn'; there is cuMemAllocAsync, "):
        plan("cuMemAllocAsyn")
    for entry in ("cuGetErrorName", "cuGetProcAddress_v2", "cuGetExportTable"):
        with pytest.raises(ValueError, match=f"{entry} never fails"):
            plan(entry)
    for nth in (0, -1, 2**64):
        with pytest.raises(ValueError, match=f"nth is {nth}, and 1 is the next call"):
            plan("cuStreamQuery", nth=nth)
    with pytest.raises(ValueError, match="-1 is no thread's number"):
        plan("cuStreamQuery", thread=-1)
    for wrong in ({"nth": 1.0}, {"nth": "1"}, {"thread": None}):
        with pytest.raises(TypeError):
            plan("cuStreamQuery", **wrong)


@pytest.mark.parametrize("plan", [faults.failing, faults.poisoning])
def test_codes_that_are_no_failure(plan):
    for code in (0, -1, 2**31):
        with pytest.raises(ValueError, match=f"{code} is the CUresult of no failure"):
            plan("cuStreamQuery", code)


def test_an_unknown_entry_was_never_called():
    with pytest.raises(ValueError, match="no entry 'cuNoSuchEntry'"):
        simulation.calls("cuNoSuchEntry")


def test_every_entry_that_may_fail_can_be_planned():
    for entry in set(simulation.entries()) - faults.UNFAILING:
        with faults.failing(entry, 999, nth=1 << 40) as fault:
            assert fault.hits == 0


def test_the_counted_call_fails(device):
    with faults.failing("cuMemGetInfo_v2", 999, nth=2) as fault:
        device.memory_info
        with pytest.raises(ftcuda.CUDAError, match="CUDA_ERROR_UNKNOWN"):
            device.memory_info
        device.memory_info
        assert fault.hits == 1


NO_THREAD = """
import resource

import ftcuda
from ftcuda.testing import simulation

device = ftcuda.Device()
device.set_current()
working, starved = device.create_stream(), device.create_stream()
working.record()
working.sync()
pages = int(open("/proc/self/statm").read().split()[0])
_, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**20, most))  # less than a thread's stack
try:
    starved.record()
    starved.sync()
except ftcuda.CUDAError as error:
    print(error)
print(simulation.last_fault())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_without_a_thread_for_a_stream_its_context_fails(run_python):
    said = run_python(NO_THREAD)
    assert "CUDA_ERROR_LAUNCH_FAILED" in said and "no thread for the work of a stream" in said
