"""What a batcher does when its context dies, when its process forks, and when that ends."""

import pytest

from tests.conftest import simulated_only

pytestmark = pytest.mark.thread_unsafe(reason="its processes use all processors")

BEGIN = """
import os, sys, threading
import numpy as np
import ftcuda
from ftcuda import Device, LaunchConfig, launch
from ftcuda.serving import Batcher
from tests.kernels import compile_code

device = Device(0)
ONE = LaunchConfig(grid=1, block=1)
code = compile_code('extern "C" __global__ void fault() { *(int*)8 = 1; }')
ROW = np.arange(4, dtype=np.int32)
is_bad, may_go = threading.Event(), threading.Event()
may_go.set()

def forward(batch):
    batch["y"].copy_from(batch["x"], stream=batch.stream)
    if is_bad.is_set():
        launch(batch.stream, ONE, code.get_kernel("fault"))
    may_go.wait()

def new_batcher(capture):
    array = ("int32", (4,))
    return Batcher(forward, inputs={"x": array}, outputs={"y": array}, batch_sizes=(1, 2), device=device, capture=capture)

def name_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"
"""


@pytest.fixture(params=[True, False], ids=["captured", "called"])
def capture(request, device):
    if request.param and not device.features.graphs:
        pytest.skip("this driver has no graphs")
    return request.param


@simulated_only
def test_a_dead_context_fails_requests_and_nobody_waits(run_python):
    """The first batch finds the fault, and what comes later the dead context."""
    said = run_python(
        BEGIN
        + """
batcher = new_batcher(False)
assert batcher(ROW).tolist() == ROW.tolist()
is_bad.set()
futures = [batcher.submit(ROW) for _ in range(6)]
names = {name_of(lambda: each.result(20)) for each in futures}
assert names <= {"CUDAError", "ContextPoisonedError", "ForwardError"}, names
assert name_of(lambda: batcher(ROW, timeout=20)) in ("ContextPoisonedError", "ForwardError")
figures = batcher.statistics
assert (figures.done, figures.failed) == (1, 7), figures
batcher.drain(20)
batcher.close()
"""
    )
    assert said == ""


LAST = """
maybe = compile_code('extern "C" __global__ void maybe(const int* x) { if (*x == 666) *(int*)8 = 1; }').get_kernel("maybe")
BAD = np.full(4, 666, np.int32)

def forward(batch):
    launch(batch.stream, ONE, maybe, batch["x"])
    batch["y"].copy_from(batch["x"], stream=batch.stream)
"""


@simulated_only
def test_a_context_that_dies_in_the_last_batch(run_python, capture):
    """Nobody else calls the driver, which alone can tell. Mutant: lanes look at words only."""
    run_python(
        BEGIN
        + LAST
        + f"""
for device in ftcuda.Device.get_all_devices():
    device.set_current()
    batcher = new_batcher({capture})
    assert batcher(ROW).tolist() == ROW.tolist()
    assert name_of(lambda: batcher(BAD, timeout=20)) in ("CUDAError", "ContextPoisonedError", "ForwardError")
    batcher.drain(20)
""",
        FTCUDA_SIM_DEVICES="8",
    )


@simulated_only
def test_requests_go_to_devices_that_live(run_python, capture):
    """One that has failed has no rows that wait. Mutant: the least queued one is asked, whether it lives or not."""
    run_python(
        BEGIN
        + LAST
        + f"""
device = ftcuda.Device.get_all_devices()
batcher = new_batcher({capture})
assert name_of(lambda: batcher(BAD, timeout=20)) != "nothing"
for number in range(40):
    assert batcher(ROW, timeout=20).tolist() == ROW.tolist()
assert name_of(lambda: batcher(BAD, timeout=20)) != "nothing"
assert name_of(lambda: batcher(ROW, timeout=20)) != "nothing"
assert batcher.statistics.done == 40
""",
        FTCUDA_SIM_DEVICES="2",
    )


def test_a_forked_child_is_refused(run_python, capture):
    run_python(
        BEGIN
        + f"""
batcher = new_batcher({capture})
pending = batcher.submit(ROW)
pending.result(20)
child = os.fork()
if child == 0:
    calls = (
        lambda: batcher.submit(ROW), lambda: batcher(ROW), batcher.drain, batcher.close, lambda: new_batcher({capture}),
        pending.cancel, lambda: pending.add_done_callback(print),
    )
    names = [name_of(each) for each in calls]
    batcher.statistics, repr(batcher)
    del batcher, pending
    os._exit(0 if set(names) == {{"ForkedProcessError"}} else 1)
assert os.waitpid(child, 0)[1] == 0
assert batcher(ROW).tolist() == ROW.tolist()
"""
    )


def test_a_process_ends_amid_requests(run_python, capture):
    """Threads submit and wait, others never come back from forward; nobody closes anything."""
    run_python(
        BEGIN
        + f"""
batcher = new_batcher({capture})
def ask():
    while True:
        batcher(ROW)
threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
for each in threads:
    each.start()
while batcher.statistics.done < 20:
    batcher(ROW)
if not {capture}:
    may_go.clear()  # threads are amid forward when the process ends
"""
    )
