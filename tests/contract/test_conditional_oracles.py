"""What only the simulated driver says of conditional nodes: missing edges, memory that is gone, threads that meet, values."""

from ctypes import byref, c_int, c_size_t, c_void_p

import pytest

from tests.conftest import simulated_only
from tests.contract.conditionals import (
    CONDITIONAL,
    SWITCH,
    WHILE,
    capture_into,
    driver,
    graph_kernels,
    handle_in,
    instantiation,
    node,
    only,
)
from tests.contract.graphs import INVALID_VALUE, memory_of_the_device
from tests.contract.test_graph_oracles import assert_the_seed_decides, meet

__all__ = ["driver", "graph_kernels"]
pytestmark = [
    simulated_only,
    pytest.mark.thread_unsafe(reason="waits for the whole device, and reads the violations of the whole process"),
]


def run_watched(driver, executable, launches=2):
    from ftcuda.testing import simulation

    with simulation.watched_races():
        for _ in range(launches):  # they come one after the other, in whatever streams
            driver.call("cuGraphLaunch", executable, driver.stream())
        driver.call("cuCtxSynchronize")


def begun_while(driver, memory, graph, before=()):
    """The node, its body with one kernel, that kernel, and the handle: what ends it is added by the test."""
    handle = handle_in(driver, graph, 1)
    made, (body,) = node(driver, graph, before, handle, WHILE)
    first = driver.kernel(body, [], "store", memory.at(1), 1)
    return made, body, first, handle


@pytest.mark.parametrize("ordered", [True, False])
def test_a_missing_edge_in_a_body_is_a_race(driver, memory, violations, ordered):
    graph = driver.graph()
    _, body, first, handle = begun_while(driver, memory, graph)
    left = driver.kernel(body, [], "plus", memory.at(2), 1)
    right = driver.kernel(body, [left] if ordered else [], "plus", memory.at(2), 1)
    driver.kernel(body, [first, left, right], "count_to", handle, memory.at(0), 3)
    run_watched(driver, driver.executable(graph), launches=1)
    found = violations()
    assert all("no order between streams: kernel plus" in report for report in found)
    assert bool(found) != ordered
    assert not ordered or memory.words[2] == 6


@pytest.mark.parametrize("ordered", [True, False])
def test_a_missing_edge_to_a_conditional_node_is_a_race_with_its_body(driver, memory, violations, ordered):
    graph = driver.graph()
    made, body, first, handle = begun_while(driver, memory, graph)
    driver.kernel(body, [first], "count_to", handle, memory.at(0), 3)
    driver.kernel(graph, [made] if ordered else [], "store", memory.at(1), 2)
    run_watched(driver, driver.executable(graph))
    assert bool(violations()) != ordered


def test_rounds_launches_and_nested_nodes_are_in_order(driver, memory, violations):
    graph = driver.graph()
    before = driver.kernel(graph, [], "store", memory.at(2), 0)
    made, body, first, handle = begun_while(driver, memory, graph, [before])
    inner = handle_in(driver, graph, 1)
    nested, (within,) = node(driver, body, [first], inner)
    one, two = (driver.kernel(within, [], "store", memory.at(place), place) for place in (3, 4))
    driver.kernel(within, [one, two], "plus", memory.at(2), 1)
    driver.kernel(body, [nested], "count_to", handle, memory.at(0), 3)
    driver.kernel(graph, [made], "plus", memory.at(2), 10)
    executable = driver.executable(graph)
    run_watched(driver, executable, launches=3)
    assert violations() == []
    assert memory.words[2] == 11  # the count stays at three and more: one round in the last launch


def test_memory_freed_under_a_launch_that_may_need_it_is_a_violation(driver, memory, violations):
    """Whichever body runs."""
    from ftcuda.testing import simulation

    driver.needs(12, 8)
    graph, pointer, stream = driver.graph(), memory_of_the_device(driver), driver.stream()
    _, bodies = node(driver, graph, [], handle_in(driver, graph, 0), SWITCH, 2)
    driver.kernel(bodies[1], [], "maybe", pointer, 0)
    executable = driver.executable(graph)
    with simulation.held_clock():
        driver.call("cuGraphLaunch", executable, stream)
        assert violations() == []
        driver.call("cuMemFree_v2", pointer)
        assert violations() == ["memory freed before the last work that uses it was done"]
    driver.call("cuStreamSynchronize", stream)
    driver.run(executable)
    assert violations() == ["graph launched with memory that was freed since"]


def test_a_graph_and_its_bodies_are_one_to_threads(driver, memory, violations):
    graph, _, made, (body,) = only(driver, memory)
    _, (inner,) = node(driver, body, [], handle_in(driver, graph))
    other, _, _, (others,) = only(driver, memory)
    context = driver.context()
    for held, called, expected in (
        (graph, inner, True),
        (inner, graph, True),
        (body, inner, True),
        (body, others, False),
    ):
        meet(driver, "cuGraphGetNodes", lambda h=held: driver.nodes(h), lambda o=called: driver.edges(o))
        assert set(violations()) == ({"two threads inside one graph at once"} if expected else set())
    create = (byref(c_void_p()), body, context, 0, 0)
    meet(
        driver, "cuGraphGetNodes", lambda: driver.nodes(graph),
        lambda: driver.call("cuGraphConditionalHandleCreate", *create),
    )  # fmt: skip
    assert violations() == ["two threads inside one graph at once"]
    assert driver.type(made) == CONDITIONAL and other


def test_a_value_of_a_handle_that_the_graph_has_not_is_a_violation(driver, memory, violations):
    """A driver sets nothing and says nothing."""
    graph, handle, _, _ = only(driver, memory, default=0)
    driver.kernel(graph, [], "set", c_void_p(handle.value + 1), 1)
    driver.run(driver.executable(graph))
    assert violations() == ["cudaGraphSetConditional with a handle that the launched graph does not have"]
    assert memory.words[0] == 0


def test_a_graph_whose_body_a_failed_capture_has_taken_is_not_instantiated(driver, memory, violations):
    """With driver 580 the process ends there."""
    graph, _, _, (body,) = only(driver, memory)
    stream, ended = driver.stream(), c_void_p()
    capture_into(driver, stream, body)
    driver.launch(stream, "store", memory.at(0), 1)
    assert driver.result("cuStreamQuery", stream) == 900
    assert driver.result("cuStreamEndCapture", stream, byref(ended)) == 901
    assert violations() == []
    instantiation(driver, graph)
    assert violations() == ["graph used of which a failed capture destroyed a body"]
    count = c_size_t()
    assert driver.result("cuGraphGetNodes", body, None, byref(count)) == INVALID_VALUE
    assert violations() == ["stale or foreign graph handle"]


def test_a_schedule_interleaves_branches_of_a_body(driver, memory):
    """Two branches write the same word: which comes last depends on the seed alone."""
    graph = driver.graph()
    handle = handle_in(driver, graph, 1)
    _, (body,) = node(driver, graph, [], handle)
    for value in (2, 3):
        driver.kernel(body, [], "store", memory.at(1), value)
    assert_the_seed_decides(driver, memory, driver.executable(graph))


def test_no_clock_waits_for_a_while_that_waits_for_the_host(driver, memory):
    from ftcuda.testing import simulated_clock

    graph = driver.graph()
    handle = handle_in(driver, graph, 1)
    _, (body,) = node(driver, graph, [], handle, WHILE)
    driver.kernel(body, [], "until", handle, memory.at(0))
    executable, stream = driver.executable(graph), driver.stream()
    with simulated_clock() as clock:
        driver.call("cuGraphLaunch", executable, stream)
        for _ in range(3):
            clock.advance(1)
        memory.words[0] = 1
        driver.call("cuStreamSynchronize", stream)
    assert c_int(memory.words[0]).value == 1
