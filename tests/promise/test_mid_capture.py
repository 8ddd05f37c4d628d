"""What ends a process, or its context, in the middle of a capture: each is defined, and loses nothing without a word."""

import pytest

import ftcuda

pytestmark = pytest.mark.skipif(not ftcuda.Device(0).features.graphs, reason="graphs need a driver of CUDA 11.4")

SETUP = """
import ftcuda, os, sys
import numpy as np
from ftcuda import *
device = Device(0)
stream = device.create_stream()
ONE = LaunchConfig(grid=1, block=1)
code = Program('extern "C" __global__ void k(int* p) { *p += 1; }', "c++").compile("ptx" if ftcuda.driver_info().simulated else "cubin")
kernel = code.get_kernel("k")
memory = LegacyPinnedMemoryResource().allocate(4)
word = np.frombuffer(memory, np.int32)
word[:] = 0
builder = device.create_graph_builder().begin_building()
launch(builder, ONE, kernel, memory)
body = None
if device.features.conditional_graphs:
    body = builder.if_then(builder.create_condition(1)).begin_building()
    launch(body, ONE, kernel, memory)
def finish():
    if body is not None: body.end_building()
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert word[0] == (1 if body is None else 2), word
    graph.close()
"""


@pytest.fixture(autouse=True)
def programs_fit(ptx_fits):
    pass


def test_a_forked_child_has_no_part_in_it(run_python):
    said = run_python(
        SETUP
        + """
sys.stdout.flush()
child = os.fork()
if child == 0:
    calls = [lambda: launch(builder, ONE, kernel, memory), builder.end_building, lambda: builder.split(2), builder.complete,
             lambda: builder.callback(print), lambda: builder.create_condition(1)]
    for call in calls:
        try: call()
        except ForkedProcessError: continue
        except NotSupportedError: continue
        os._exit(1)
    assert not builder.is_building
    builder.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
finish()
print("whole")
"""
    )
    assert said.endswith("whole\n")


@pytest.mark.parametrize("way", ["", "sys.exit(0)", "os._exit(0)", "del builder, body; sys.exit(0)"])
def test_exit(run_python, way):
    said = run_python(SETUP + f"print('leaving', flush=True)\n{way}\n")
    assert said.startswith("leaving\n") and ("lost while it captured" in said) == (way != "os._exit(0)")


def test_a_context_that_fails_takes_the_capture(run_python):
    """And says so, in each call that follows."""
    said = run_python(
        SETUP
        + """
bad = Program('extern "C" __global__ void bad(int* p) { *p = 1; }', "c++")
launch(stream, ONE, bad.compile("ptx" if ftcuda.driver_info().simulated else "cubin").get_kernel("bad"), 64)
try: stream.sync()
except CUDAError as error: assert error.code == 700, error
for call in (lambda: launch(builder, ONE, kernel, memory), builder.end_building, lambda: builder.split(2), lambda: builder.callback(print)):
    try: call()
    except ContextPoisonedError as error: assert error.code == 700
    else: sys.exit(f"no error from {call}")
if body is not None: body.close()
builder.close()
del builder, body
print("said so")
"""
    )
    assert said.endswith("said so\n")
