"""Nodes that run bodies by a value which kernels set: the simulated driver and a GPU behave alike."""

import ctypes
import threading
from ctypes import byref, c_size_t, c_uint, c_void_p

import pytest

import ftcuda
from tests.conftest import simulated_only
from tests.contract.conditionals import (
    CONDITIONAL,
    IF,
    SWITCH,
    WHILE,
    capture_into,
    driver,
    end_capture,
    graph_kernels,
    handle_in,
    node,
    only,
)
from tests.contract.graphs import KERNEL, array, memory_of_the_device
from tests.kernels import IS_SIMULATED, compile_code

__all__ = ["driver", "graph_kernels"]
pytestmark = pytest.mark.thread_unsafe(reason="a call of another thread on the same device could end a capture")


# ---- What runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, 7])
def test_an_if_runs_its_body_where_the_value_is_not_zero(driver, memory, value):
    graph, _, _, _ = only(driver, memory, default=value)
    executable = driver.executable(graph)
    for launches in (1, 2):
        driver.run(executable)
        assert memory.words[0] == (launches if value else 0)


@pytest.mark.parametrize("value", [0, 1, 2])
def test_an_if_with_two_bodies_runs_one_of_them(driver, memory, value):
    driver.needs(12, 8)
    graph, _, _, _ = only(driver, memory, IF, 2, default=value)
    driver.run(driver.executable(graph))
    assert memory.words[0] == (1 if value else 10)


@pytest.mark.parametrize(("value", "expected"), [(0, 1), (1, 10), (2, 100), (3, 0), (2**32 - 1, 0)])
def test_a_switch_runs_the_body_of_that_number_or_none(driver, memory, value, expected):
    driver.needs(12, 8)
    graph, _, _, _ = only(driver, memory, SWITCH, 3, default=value)
    driver.run(driver.executable(graph))
    assert memory.words[0] == expected


def test_a_while_runs_its_body_until_the_value_is_zero(driver, memory):
    graph = driver.graph()
    handle = handle_in(driver, graph, 1)
    _, (body,) = node(driver, graph, [], handle, WHILE)
    driver.kernel(body, [], "count_to", handle, memory.at(0), 5)
    executable = driver.executable(graph)
    driver.run(executable)
    assert memory.words[0] == 5
    driver.run(executable)  # the value is 1 again: one round more
    assert memory.words[0] == 6


def test_a_while_may_run_never(driver, memory):
    graph, _, _, _ = only(driver, memory, WHILE, default=0)
    driver.run(driver.executable(graph))
    assert memory.words[0] == 0


def test_the_value_is_that_of_the_moment_when_the_node_runs(driver, memory):
    """Set by kernels before it, one of which reads it from memory; what comes behind the node sees what the body did."""
    graph = driver.graph()
    handle = handle_in(driver, graph, 0, 0)
    stored = driver.kernel(graph, [], "store", memory.at(1), 3)
    first = driver.kernel(graph, [stored], "set", handle, 0)
    second = driver.kernel(graph, [first], "copy", handle, memory.at(1))
    made, (body,) = node(driver, graph, [second], handle)
    inner = driver.kernel(body, [], "digit", memory.at(0), 1)
    driver.kernel(body, [inner], "digit", memory.at(0), 2)
    reset = driver.kernel(graph, [made], "set", handle, 0)
    driver.kernel(graph, [reset], "digit", memory.at(0), 3)
    driver.run(driver.executable(graph))
    assert memory.words[0] == 123


def test_nodes_in_a_while_are_nested_whiles(driver, memory):
    """Three rounds of two: the inner value begins each round as the last kernel of the round before set it."""
    graph = driver.graph()
    outer, inner = handle_in(driver, graph, 1), handle_in(driver, graph, 1)
    _, (body,) = node(driver, graph, [], outer, WHILE)
    first = driver.kernel(body, [], "store", memory.at(1), 0)
    nested, (within,) = node(driver, body, [first], inner, WHILE)
    counted = driver.kernel(within, [], "count_to", inner, memory.at(1), 2)
    driver.kernel(within, [counted], "plus", memory.at(2), 1)
    again = driver.kernel(body, [nested], "set", inner, 1)
    driver.kernel(body, [again], "count_to", outer, memory.at(0), 3)
    driver.run(driver.executable(graph))
    assert list(memory.words[:3]) == [3, 2, 6]


def test_a_body_sets_the_value_of_a_node_behind_its_own(driver, memory):
    graph = driver.graph()
    first, second = handle_in(driver, graph, 1), handle_in(driver, graph, 0)
    one, (body,) = node(driver, graph, [], first)
    driver.kernel(body, [], "set", second, 1)
    _, (other,) = node(driver, graph, [one], second)
    driver.kernel(other, [], "store", memory.at(0), 4)
    driver.run(driver.executable(graph))
    assert memory.words[0] == 4


@simulated_only
def test_without_the_flag_a_value_stays_from_launch_to_launch(driver, memory):
    """And is no default. CUDA calls it undefined: one H100 began with 0, another one with 1."""
    graph = driver.graph()
    handle = handle_in(driver, graph, 5, 0)
    made, (body,) = node(driver, graph, [], handle)
    driver.kernel(body, [], "plus", memory.at(0), 1)
    driver.kernel(graph, [made], "set", handle, 1)
    executable = driver.executable(graph)
    for expected in (0, 1, 2):
        driver.run(executable)
        assert memory.words[0] == expected


def test_a_body_copies_fills_and_has_child_graphs(driver, memory):
    graph, child = driver.graph(), driver.graph()
    handle, pointer = handle_in(driver, graph, 1), memory_of_the_device(driver)
    driver.kernel(child, [], "digit", pointer, 5)
    _, (body,) = node(driver, graph, [], handle)
    filled = driver.fill(body, [], pointer, 2, 4)
    called = driver.added("cuGraphAddChildGraphNode", body, [filled], child)
    nothing = driver.added("cuGraphAddEmptyNode", body, [called])
    driver.copy(body, [nothing], memory.at(0), pointer, 16)
    driver.run(driver.executable(graph))
    assert list(memory.words[:4]) == [25, 2, 2, 2]
    driver.call("cuMemFree_v2", pointer)


def test_branches_of_a_body_are_joined_behind_the_node(driver, memory):
    graph = driver.graph()
    handle = handle_in(driver, graph, 1)
    made, (body,) = node(driver, graph, [], handle)
    left, right = (driver.kernel(body, [], "store", memory.at(place), place) for place in (1, 2))
    driver.kernel(body, [left, right], "store", memory.at(3), 3)
    driver.kernel(body, [], "store", memory.at(4), 4)  # nothing in the body waits for it
    driver.kernel(graph, [made], "digit", memory.at(4), 5)
    driver.run(driver.executable(graph))
    assert list(memory.words[1:5]) == [1, 2, 3, 45]


def test_a_capture_goes_into_a_body(driver, memory):
    stream, graph = driver.stream(), driver.graph()
    handle = handle_in(driver, graph, 1)
    _, (body,) = node(driver, graph, [], handle, WHILE)
    first = driver.kernel(body, [], "plus", memory.at(1), 2)
    capture_into(driver, stream, body, first)
    driver.launch(stream, "plus", memory.at(1), 3)
    driver.launch(stream, "count_to", handle, memory.at(0), 4)
    assert end_capture(driver, stream) == body.value
    assert driver.shape(body) == ([KERNEL] * 3, {(0, 1), (1, 2)})
    driver.run(driver.executable(graph))
    assert list(memory.words[:2]) == [4, 20]


def test_a_captured_graph_has_conditional_nodes(driver, memory):
    """As programs do it that capture all they do: the node is put behind what was captured, and the capture goes on behind it."""
    first, second = driver.stream(), driver.stream()
    driver.begin(first)
    driver.launch(first, "store", memory.at(1), 1)
    graph, before = driver.captured(first)
    handle = handle_in(driver, graph, 0, 0)
    driver.launch(first, "copy", handle, memory.at(1))
    graph, before = driver.captured(first)
    made, (body,) = node(driver, graph, before, handle)
    after = array(made)
    driver.call("cuStreamUpdateCaptureDependencies", first, after, c_size_t(1), c_uint(1))
    capture_into(driver, second, body)
    driver.launch(second, "digit", memory.at(0), 1)
    end_capture(driver, second)
    driver.launch(first, "digit", memory.at(0), 2)
    captured = driver.end(first)
    assert driver.shape(captured) == ([KERNEL, KERNEL, CONDITIONAL, KERNEL], {(0, 1), (1, 2), (2, 3)})
    driver.run(driver.executable(captured))
    assert memory.words[0] == 12


def test_a_launch_has_the_bodies_as_they_were_when_it_was_called(driver, memory):
    graph, _, _, (body,) = only(driver, memory)
    (inner,) = driver.nodes(body)
    executable, stream, open_now = driver.executable(graph), driver.stream(), threading.Event()
    wait = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: open_now.wait(60) and None)
    driver.call("cuLaunchHostFunc", stream, wait, None)
    driver.call("cuGraphLaunch", executable, stream)
    launch = driver.launch_of("plus", memory.at(0), 100)
    driver.call("cuGraphExecKernelNodeSetParams_v2", executable, c_void_p(inner), byref(launch))
    open_now.set()
    driver.call("cuStreamSynchronize", stream)
    assert memory.words[0] == 1
    driver.run(executable)
    assert memory.words[0] == 101
    driver.call("cuGraphNodeSetEnabled", executable, c_void_p(inner), c_uint(0))
    driver.run(executable)
    assert memory.words[0] == 101


def test_an_executable_in_flight_runs_to_its_end(driver, memory, device):
    """Its destruction waits for the device where the driver is a GPU's, and keeps others out meanwhile."""
    graph = driver.graph()
    handle = handle_in(driver, graph, 1)
    _, (body,) = node(driver, graph, [], handle, WHILE)
    driver.kernel(body, [], "count_to", handle, memory.at(0), 50)
    executable, stream, open_now = driver.executable(graph), driver.stream(), threading.Event()
    wait = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: open_now.wait(60) and None)
    driver.call("cuLaunchHostFunc", stream, wait, None)
    driver.call("cuGraphLaunch", executable, stream)
    ending = threading.Thread(target=lambda: (device.set_current(), driver.destroy(executable)))
    ending.start()
    ending.join(0.2)
    open_now.set()
    ending.join()
    driver.destroy(graph)
    driver.call("cuStreamSynchronize", stream)
    assert memory.words[0] == 50


def test_a_while_that_waits_for_the_host_is_ended_by_it(driver, memory):
    graph = driver.graph()
    handle = handle_in(driver, graph, 1)
    _, (body,) = node(driver, graph, [], handle, WHILE)
    counted = driver.kernel(body, [], "plus", memory.at(1), 1)
    driver.kernel(body, [counted], "until", handle, memory.at(0))
    executable, stream = driver.executable(graph), driver.stream()
    driver.call("cuGraphLaunch", executable, stream)
    while memory.words[1] < 300:  # it goes on as long as nobody stops it
        assert driver.result("cuStreamQuery", stream) == 600
    memory.words[0] = 1
    driver.call("cuStreamSynchronize", stream)
    rounds = memory.words[1]
    driver.run(executable)
    assert memory.words[1] == rounds + 1


# ---- Faults ----------------------------------------------------------------------------------------------------------

OUTSIDE = """
import ftcuda
from tests.kernels import compile_code
from tests.contract.conditionals import SOURCE
from tests.contract.fault import report
device = ftcuda.Device(0)
if tuple(map(int, ftcuda.driver_info().version.split("."))) < (12, 4):
    raise SystemExit("too old")
stream, kernel = device.create_stream(), compile_code(SOURCE).get_kernel("set")
ftcuda.launch(stream, ftcuda.LaunchConfig(grid=1, block=1), kernel, 1, 1)
report(stream)
"""


@pytest.mark.faulting
def test_a_value_set_outside_of_a_graph_is_a_fault(driver, run_python):
    """A process of its own, since the context is lost."""
    printed = run_python(OUTSIDE)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS\n" in printed
    if IS_SIMULATED:
        assert "cudaGraphSetConditional outside of a launch of a graph that has conditional handles" in printed
        assert "kernel set" in printed


@simulated_only
def test_other_functions_that_a_text_does_not_define_are_refused(device):
    source = 'extern "C" __device__ void absent(int); extern "C" __global__ void calls(int value) { absent(value); }'
    with pytest.raises(ftcuda.CUDAError, match="call of 'absent', which the text does not define"):
        compile_code(source).get_kernel("calls")
